"""``smembench list``: problems with their kernels, compilers, lessons and devices, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.registry import Kernel
from smembench.model.device import DeviceInfo
from smembench.model.problem import Problem
from smembench.studies.lesson import LESSONS
from smembench.toolchains.registry import compilers


def lines(devices: Sequence[DeviceInfo], no_gpu: str) -> Iterator[str]:
    """Every line; ``no_gpu`` says why no GPU can be used; empty if one can."""
    for problem in PROBLEMS.values():
        yield f"{problem.name}: {problem.title}, {', '.join(problem.dtypes)}"
        for kernel in registry.kernels():
            if kernel.problem == problem.name and not kernel.port:
                yield _kernel(problem, kernel)
    yield "compilers:"
    for toolchain in compilers():
        yield f"  {toolchain.name:<7} {toolchain.not_installed() or toolchain.language}"
    yield "lessons:"
    for lesson, taught in LESSONS.items():
        yield f"  {lesson:<7} {taught}"
    yield "devices:"
    for device in devices:
        yield f"  {device.name:<7} {device.model}"
    if no_gpu:
        yield f"  no GPU: {no_gpu}"


def _kernel(problem: Problem, kernel: Kernel) -> str:
    ports = [k.compiler for k in registry.of_name(problem.name, kernel.name, kernel.kind) if k.port]
    also = f"; also by {', '.join(ports)}" if ports else ""
    return f"  {kernel.kind:<5} {kernel.name:<23} {kernel.summary}{also}"
