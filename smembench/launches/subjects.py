"""A kernel of the user's by its target: compiled or imported for the current GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from smembench.launches.arguments import in_order_and_named
from smembench.launches.cuda_file import compiled_kernel, is_cuda_file
from smembench.launches.launch import Launch
from smembench.launches.launched_code import LaunchedCode, of_cubin, of_source, of_triton
from smembench.launches.live import is_token, name_of, value_of
from smembench.launches.python_calls import FunctionCall, NumbaLaunch
from smembench.launches.python_file import callable_in
from smembench.launches.raw_kernel import compiled_source, raw_kernel
from smembench.launches.subject import Subject
from smembench.model.errors import UsageError
from smembench.model.user_launch import UserLaunch
from smembench.toolchains.triton_function import is_triton


def subject_of(launch: UserLaunch, capability: str) -> Subject:
    """The kernel of a launch, for the current GPU, which has this compute capability.

    Raises:
        UsageError: for a file that is not found, does not compile or lacks the kernel, and a launch that it does not
            take.
    """
    arguments, named = in_order_and_named(launch.arguments)
    path = Path(launch.target.partition(":")[0])
    if launch.options and not is_cuda_file(launch.target):
        raise UsageError(f"{launch.options[0]}: goes with a kernel in a .cu file")
    if path.suffix == ".cubin":
        return LaunchedCode(of_cubin(launch.target, arguments), launch)
    if is_cuda_file(launch.target):
        code = of_source(*compiled_kernel(launch.target, capability, launch.options), arguments, capability)
        return LaunchedCode(code, launch)
    kernel = value_of(launch.target) if is_token(launch.target) else callable_in(launch.target)
    launch = replace(launch, target=name_of(launch.target))  # as messages have it
    if is_triton(kernel):
        whole = Launch(launch.grid, launch.block or None, arguments, named, launch.shared_bytes)
        return LaunchedCode(of_triton(kernel, whole, capability), launch)
    if named and launch.grid:
        raise UsageError(f"{next(iter(named))}=…: goes with Triton or a function; give the arguments in their order")
    if (raw := raw_kernel(kernel)) is not None:
        return LaunchedCode(of_source(*compiled_source(raw, capability), arguments, capability), launch)
    if hasattr(kernel, "py_func"):
        return NumbaLaunch(kernel, launch, arguments)
    return FunctionCall(kernel, launch, arguments, named)
