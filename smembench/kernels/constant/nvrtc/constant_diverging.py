"""constantDiverging in CUDA C: constantUniform, whose lanes begin with different taps."""

from __future__ import annotations

from smembench.kernels.constant.cuda import constant_diverging
from smembench.kernels.constant.nvrtc.constant_uniform import DECLARED
from smembench.kernels.constant.stencil import DIVERGING
from smembench.kernels.constant.stencil_c import stencil_port

KERNEL = stencil_port(constant_diverging.KERNEL, DIVERGING, declared=DECLARED)
