"""The interface of a toolchain, and the list of toolchains.

A toolchain is a module of this package with a ``TOOLCHAIN``. To add one, add a file: ``--compiler``, the tables of
``smembench compilers`` and the versions in run.json include it, and kernels name it as their ``compiler``.
"""

from __future__ import annotations

import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import smembench.toolchains
from smembench.kernels.program import GpuKernel, Program
from smembench.model.case import DEFAULT_COMPILER, ENGINES, Case
from smembench.model.install import extra
from smembench.model.measurement import Resources

if TYPE_CHECKING:
    import numpy as np

    from smembench.model.problem import Array

P = TypeVar("P", bound=Program)


class Refused(Exception):
    """A program that its toolchain's language does not take; the message says why, on one line."""


class Compiled(ABC, Generic[P]):
    """A program compiled for the current GPU. Programs that differ only in sizes share it."""

    @abstractmethod
    def launcher(self, program: P, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """A function of the output and the inputs that enqueues a launch; ``stream`` is a handle."""

    def fill(self, variable: str, values: Array, stream: int) -> None:
        """Enqueue a copy of a host array to a variable of the module, such as a ``__constant__`` array.

        Raises:
            LookupError: if its kind of program has no variables.
            RuntimeError: CUDA's, if there is no variable of that name.
            ValueError: if the variable and the array differ in length.
        """
        raise LookupError(f"there is no variable {variable}")

    def resources(self) -> Resources:
        """Registers and local memory per thread, from the driver, known after the first launch; empty if unknown."""
        return Resources()


class Toolchain(ABC, Generic[P]):
    """Makes programs of one kind run on a GPU.

    Attributes:
        name: as in ``Kernel.compiler``, ``--compiler`` and the results.
        language: of its kernels, as tables name it.
        kind: the type of program that it takes.
        module: what it imports and an extra of its name installs; empty if it is always installed.
        packages: Python packages whose versions run.json records.
        makers: the recorded versions that decide its machine code, by name.
    """

    name: ClassVar[str]
    language: ClassVar[str] = ""
    kind: ClassVar[type[Program]]
    module: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()
    makers: ClassVar[tuple[str, ...]] = ()

    def libraries(self) -> dict[str, str]:
        """Versions of the NVIDIA libraries that make its code, as they report them.

        Raises:
            Exception: a missing library's own.
        """
        return {}

    @property
    def installed(self) -> bool:
        """True if its module is there; it need not work."""
        return not self.module or find_spec(self.module) is not None

    @property
    def install(self) -> str:
        """The command that installs it."""
        return extra(self.name)

    def not_installed(self) -> str:
        """A message with the command that installs it; empty if it is installed."""
        return "" if self.installed else f"{self.language} is not installed: {self.install}"

    def unavailable(self) -> str | None:
        """The reason, in one line, why its kernels cannot be compiled here, or None."""
        if reason := self.not_installed():
            return reason
        try:
            self.try_out()
        except Exception as error:  # each library raises its own
            return " ".join(str(error).split())[:200]
        return None

    def try_out(self) -> None:
        """Raise an exception if a library that it needs is missing."""
        self.libraries()

    @abstractmethod
    def compile(self, case: Case, program: P, capability: str) -> Compiled[P]:
        """Compile a case's program for the current GPU, at once or at its first launch; ``capability`` is the GPU's.

        Raises:
            Refused: if its language does not take the program.
        """

    def machine_code(self, case: Case, program: P, capability: str) -> tuple[str, bytes]:
        """ptxas's report and the machine code that a launch runs, an ELF file. Needs no GPU.

        The report is empty if the toolchain does not hand it on.

        Raises:
            LookupError: if it compiles nothing.
            Refused: if its language does not take the program.
            Exception: a missing library's or the compiler's own.
        """
        raise LookupError(f"{self.name} compiles nothing")


@cache
def toolchains() -> tuple[Toolchain[Any], ...]:
    """Every toolchain of this package, the default first."""
    modules = (info.name for info in pkgutil.iter_modules(smembench.toolchains.__path__, "smembench.toolchains."))
    values = (getattr(import_module(name), "TOOLCHAIN", None) for name in modules)
    every = (toolchain for toolchain in values if isinstance(toolchain, Toolchain))
    return tuple(sorted(every, key=lambda toolchain: (toolchain.name != DEFAULT_COMPILER, toolchain.name)))


def toolchain_of(program: Program, compiler: str = DEFAULT_COMPILER) -> Toolchain[Any]:
    """The toolchain that takes programs of this type; of several the one of this name.

    Raises:
        LookupError: if there is none.
    """
    takers = [toolchain for toolchain in toolchains() if type(program) is toolchain.kind]
    for toolchain in sorted(takers, key=lambda toolchain: toolchain.name != compiler):
        return toolchain
    raise LookupError(f"no toolchain takes a {type(program).__name__}")


def compilers() -> tuple[Toolchain[Any], ...]:
    """The toolchains that compile kernels, the default first."""
    return tuple(toolchain for toolchain in toolchains() if issubclass(toolchain.kind, GpuKernel))


def names() -> tuple[str, ...]:
    """Names for ``--compiler``, the default first."""
    return tuple(toolchain.name for toolchain in compilers())


def default_compiler() -> str:
    """The compiler of kernels that none is named for: the first engine of Numba's dialect that is installed."""
    installed = (toolchain.name for toolchain in compilers() if toolchain.name in ENGINES and toolchain.installed)
    return next(installed, DEFAULT_COMPILER)


def is_port(compiler: str) -> bool:
    """True if this compiler's kernels are ports of the default's, here or in runs from elsewhere."""
    return compiler not in (DEFAULT_COMPILER, default_compiler()) and compiler in names()


def named(compiler: str) -> str:
    """The compiler's name beside a kernel's; "" for libraries, and for Numba, which goes without saying."""
    return compiler if compiler != DEFAULT_COMPILER and compiler in names() else ""
