"""constantUniform in CUDA C: the documents' ``__constant__`` array, which the host fills before the launch.

cudaMemcpyToSymbol knows only the symbols of a host program that nvcc compiled. In its place the device copies to the
address that the driver gives for the name.
"""

from __future__ import annotations

from smembench.kernels.constant.cuda import constant_uniform
from smembench.kernels.constant.stencil import UNIFORM
from smembench.kernels.constant.stencil_c import stencil_port

DECLARED = "__constant__ T coefficients[TAPS];\n"
"""The array in constant memory."""

KERNEL = stencil_port(constant_uniform.KERNEL, UNIFORM, declared=DECLARED)
