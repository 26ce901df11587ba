"""sharedDiverging in CUDA C: sharedUniform, whose lanes begin with different taps."""

from __future__ import annotations

from smembench.kernels.constant.cuda import shared_diverging
from smembench.kernels.constant.nvrtc.shared_uniform import COPIED
from smembench.kernels.constant.stencil import DIVERGING
from smembench.kernels.constant.stencil_c import stencil_port

KERNEL = stencil_port(shared_diverging.KERNEL, DIVERGING, table=COPIED)
