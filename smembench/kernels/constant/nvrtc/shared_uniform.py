"""sharedUniform in CUDA C: the coefficients copied to shared memory, one per thread."""

from __future__ import annotations

from smembench.kernels.constant.cuda import shared_uniform
from smembench.kernels.constant.stencil import UNIFORM
from smembench.kernels.constant.stencil_c import stencil_port

COPIED = """__shared__ T coefficients[TAPS];
    if (t < TAPS)
        coefficients[t] = given[t];"""
"""Copies the coefficients to shared memory."""

KERNEL = stencil_port(shared_uniform.KERNEL, UNIFORM, table=COPIED)
