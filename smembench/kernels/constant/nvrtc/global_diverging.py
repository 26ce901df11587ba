"""globalDiverging in CUDA C: globalUniform, whose lanes begin with different taps."""

from __future__ import annotations

from smembench.kernels.constant.cuda import global_diverging
from smembench.kernels.constant.nvrtc.global_uniform import IN_PLACE
from smembench.kernels.constant.stencil import DIVERGING
from smembench.kernels.constant.stencil_c import stencil_port

KERNEL = stencil_port(global_diverging.KERNEL, DIVERGING, table=IN_PLACE)
