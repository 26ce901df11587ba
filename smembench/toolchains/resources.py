"""Registers and local memory of a kernel that was compiled for a GPU, as its driver says."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver

from smembench.kernels.numba_cuda import checked
from smembench.model.measurement import Resources


def resources_of(compiled: Any) -> Resources:
    """Of Numba's dispatcher after its first launch, or of a kernel of ``cuda.core``; nothing for None.

    A figure beside the measurement: where a version of a library does not give it, it is left out.
    """
    if compiled is None:
        return Resources()
    try:
        return _of_dispatcher(compiled) if hasattr(compiled, "get_regs_per_thread") else _of_kernel(compiled)
    except Exception:  # whichever library lacks it raises its own
        return Resources()


def _of_dispatcher(dispatcher: Any) -> Resources:
    """The most of the signatures it was compiled for, of which a case has one."""
    registers, local = dispatcher.get_regs_per_thread(), dispatcher.get_local_mem_per_thread()
    return Resources(max(registers.values()), max(local.values()))


def _of_kernel(kernel: Any) -> Resources:
    names = driver.CUfunction_attribute
    wanted = (names.CU_FUNC_ATTRIBUTE_NUM_REGS, names.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
    device = checked(driver.cuCtxGetDevice())
    return Resources(*(checked(driver.cuKernelGetAttribute(name, kernel.handle, device)) for name in wanted))
