"""Explain any kernel that is not the package's: one in a file, by its name, or a Python object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smembench.explain.costs import Costs
from smembench.explain.cuda_kernel import explain_cuda, explain_raw
from smembench.explain.numba_kernel import explain_numba
from smembench.explain.occupancy import CAPABILITIES
from smembench.explain.ptx.costs import Call
from smembench.explain.triton_kernel import explain_triton
from smembench.launches.arguments import in_order_and_named
from smembench.launches.cuda_file import is_cuda_file
from smembench.launches.dimensions import as_text
from smembench.launches.launch import Launch
from smembench.launches.launched_code import of_cubin
from smembench.launches.live import is_token, value_of
from smembench.launches.python_file import kernel_in
from smembench.launches.raw_kernel import raw_kernel
from smembench.model.errors import UsageError
from smembench.model.user_launch import UserLaunch
from smembench.toolchains.triton_function import is_triton

_DEFAULT = "9.0"


def explain_launch(launch: UserLaunch) -> Costs:
    """Explain a kernel as ``smembench time`` launches it.

    Raises:
        UsageError: for a cubin and a function, and as ``explain_any``.
    """
    arguments, named = in_order_and_named(launch.arguments)
    if launch.target.partition(":")[0].endswith(".cubin"):
        of_cubin(launch.target, arguments)
        raise UsageError("a cubin has no PTX")
    if not launch.grid:
        raise UsageError("a function has no PTX")
    kernel = value_of(launch.target) if is_token(launch.target) else launch.target
    sides = launch.grid, launch.block or None
    whole = Launch(*sides, arguments, named, launch.shared_bytes, launch.cluster or None)
    return explain_any(kernel, whole, options=launch.options)


def explain_any(kernel: Any, launch: Launch, *, capability: str | None = None, options: Sequence[str] = ()) -> Costs:
    """Explain a kernel: ``kernel.cu:name``, ``kernel.ptx:name``, ``kernel.py:name``, or a Python object.

    Args:
        kernel: text, a function for Numba or Triton, or CUDA C++ such as CuPy's RawKernel.
        launch: grid, block and arguments.
        capability: the compute capability to compile for; 9.0 if None.
        options: a compiler's, such as ``-DN=4``, for a .cu file.

    Raises:
        UsageError: for a kernel that is not found or not traced, and a launch that it does not take.
    """
    if options and not (isinstance(kernel, str) and is_cuda_file(kernel)):
        raise UsageError(f"{options[0]}: goes with a kernel in a .cu file")
    capability = _DEFAULT if capability is None else capability
    if capability not in CAPABILITIES:
        raise UsageError(f"compute capability {capability} is not among {', '.join(CAPABILITIES)}")
    if isinstance(kernel, str) and not is_cuda_file(kernel):
        kernel = kernel_in(kernel)
    if launch.cluster is not None and not (isinstance(kernel, str) or raw_kernel(kernel) is not None):
        raise UsageError(f"cluster {as_text(launch.cluster)}: goes with CUDA C++ and PTX; leave it out")
    if is_triton(kernel):
        return explain_triton(kernel, launch, capability=capability)
    grid, block, arguments, named, shared_bytes, cluster = launch
    if named:
        raise UsageError(f"{next(iter(named))}=…: goes with a kernel of Triton; give the arguments in their order")
    if block is None:
        raise UsageError("block: give it, such as 32x8; only Triton decides on it")
    call = Call(grid, block, arguments, shared_bytes, cluster)
    if isinstance(kernel, str):
        return explain_cuda(kernel, call, capability=capability, options=options)
    if (raw := raw_kernel(kernel)) is not None:
        return explain_raw(raw, call, capability=capability)
    return explain_numba(kernel, call, capability=capability)
