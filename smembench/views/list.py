"""``smembench list``: problems with their kernels, compilers, lessons, configs and devices, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.registry import Kernel
from smembench.model.device import DeviceInfo
from smembench.model.problem import Problem
from smembench.run.shipped import about, shipped
from smembench.studies.lesson import LESSONS
from smembench.toolchains import registry as toolchains


def kernels() -> Iterator[str]:
    """Problems, each with its kernels."""
    for problem in PROBLEMS.values():
        yield f"{problem.name}: {problem.title}, {', '.join(problem.dtypes)}"
        for kernel in registry.kernels():
            if kernel.problem == problem.name and not kernel.port:
                yield _kernel(problem, kernel)


def compilers() -> Iterator[str]:
    """Compilers, each with its language, or how to install it."""
    yield "compilers:"
    for toolchain in toolchains.compilers():
        yield f"  {toolchain.name:<7} {toolchain.not_installed() or toolchain.language}"


def lessons() -> Iterator[str]:
    """Lessons, each with what it teaches."""
    yield "lessons:"
    for lesson, taught in LESSONS.items():
        yield f"  {lesson:<10} {taught}"


def configs() -> Iterator[str]:
    """The package's configs, each with what it says of itself."""
    yield "configs, for smembench run:"
    for name, path in shipped().items():
        yield f"  {name:<9} {about(path)}"


def devices(found: Sequence[DeviceInfo], no_gpu: str) -> Iterator[str]:
    """Devices; ``no_gpu`` says why no GPU can be used, and is empty if one can."""
    yield "devices:"
    for device in found:
        yield f"  {device.name:<7} {device.model}"
    if no_gpu:
        yield f"  no GPU: {no_gpu}"


def _kernel(problem: Problem, kernel: Kernel) -> str:
    ports = [k.compiler for k in registry.of_name(problem.name, kernel.name, kernel.kind) if k.port]
    also = f"; also by {', '.join(ports)}" if ports else ""
    return f"  {kernel.kind:<5} {kernel.name:<23} {kernel.summary}{also}"
