"""globalUniform in CUDA C: the coefficients read where they are."""

from __future__ import annotations

from smembench.kernels.constant.cuda import global_uniform
from smembench.kernels.constant.stencil import UNIFORM
from smembench.kernels.constant.stencil_c import stencil_port

IN_PLACE = "const T *coefficients = given;"
"""Makes the coefficients those in global memory."""

KERNEL = stencil_port(global_uniform.KERNEL, UNIFORM, table=IN_PLACE)
