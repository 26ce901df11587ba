"""What a toolchain is, and how the files are found.

A toolchain is a module of this package that has a ``TOOLCHAIN``. To add one, add a file: ``--compiler``, the tables of
``smembench compilers`` and the versions that run.json records pick it up, and kernels name it as their ``compiler``.
"""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import smembench.toolchains
from smembench.kernels.program import GpuKernel, Program
from smembench.model.case import DEFAULT_COMPILER, Case
from smembench.model.measurement import Resources

if TYPE_CHECKING:
    import numpy as np

    from smembench.model.problem import Array

P = TypeVar("P", bound=Program)
P_contra = TypeVar("P_contra", bound=Program, contravariant=True)


class Compiled(Protocol[P_contra]):
    """What a toolchain makes of a program for the current GPU. Programs that differ in sizes alone share it."""

    def launcher(self, program: P_contra, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """What enqueues a launch when it is called with the output and the inputs; ``stream`` is a handle."""

    def fill(self, variable: str, values: Array, stream: int) -> None:
        """Enqueue a copy of a host array to a variable of the module, such as a ``__constant__`` array.

        Raises:
            RuntimeError: CUDA's, when there is no variable of that name.
            ValueError: when the variable is not as long as the array.
        """

    def resources(self) -> Resources:
        """Registers and local memory per thread, by the driver; known after the first launch."""


class Toolchain(ABC, Generic[P]):
    """Makes programs of one kind run on a GPU.

    Attributes:
        name: as a kernel's ``compiler``, ``--compiler`` and the results have it.
        language: what its kernels are written in, as the tables say it.
        kind: the programs that it takes.
        packages: Python packages whose versions run.json records.
        makers: of all versions recorded, those that decide its machine code.
    """

    name: ClassVar[str]
    language: ClassVar[str] = ""
    kind: ClassVar[type[Program]]
    packages: ClassVar[tuple[str, ...]] = ()
    makers: ClassVar[tuple[str, ...]] = ()

    def libraries(self) -> dict[str, str]:
        """Versions of NVIDIA's libraries that make its code, by their own word.

        Raises:
            Exception: of a library that is not there.
        """
        return {}

    def unavailable(self) -> str | None:
        """Why its kernels cannot be compiled here, in one line, or None."""
        try:
            self.libraries()
        except Exception as error:  # each library raises its own
            return " ".join(str(error).split())[:200]
        return None

    @abstractmethod
    def compile(self, case: Case, program: P, capability: str) -> Compiled[P]:
        """A program of a case for the current GPU, of this compute capability; it may compile at the first launch."""

    def machine_code(self, case: Case, program: P, capability: str) -> tuple[str, bytes]:
        """ptxas's report and the machine code, an ELF file, as a launch has it. Needs no GPU.

        Raises:
            LookupError: where it compiles nothing.
            Exception: of the library that is missing, or of the compiler.
        """
        raise LookupError(f"{self.name} compiles nothing")


@cache
def toolchains() -> tuple[Toolchain[Any], ...]:
    """Every toolchain of this package, the default first."""
    modules = (info.name for info in pkgutil.iter_modules(smembench.toolchains.__path__, "smembench.toolchains."))
    found = (getattr(import_module(name), "TOOLCHAIN", None) for name in modules)
    every = (toolchain for toolchain in found if isinstance(toolchain, Toolchain))
    return tuple(sorted(every, key=lambda toolchain: (toolchain.name != DEFAULT_COMPILER, toolchain.name)))


def toolchain_of(program: Program) -> Toolchain[Any]:
    """The one that takes programs of this kind.

    Raises:
        LookupError: when none does.
    """
    for toolchain in toolchains():
        if isinstance(program, toolchain.kind):
            return toolchain
    raise LookupError(f"no toolchain takes a {type(program).__name__}")


def compilers() -> tuple[Toolchain[Any], ...]:
    """Those that compile kernels, the default first."""
    return tuple(toolchain for toolchain in toolchains() if issubclass(toolchain.kind, GpuKernel))


def names() -> tuple[str, ...]:
    """What ``--compiler`` takes."""
    return tuple(toolchain.name for toolchain in compilers())


def is_port(compiler: str) -> bool:
    """Whether kernels of this compiler are ports of the default's."""
    return compiler != DEFAULT_COMPILER and compiler in names()
