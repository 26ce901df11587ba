"""Library calls, such as cuBLAS and cudaMemcpy: they enqueue code that is already compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from smembench.kernels.program import LibraryCall
from smembench.model.case import Case
from smembench.model.measurement import Resources
from smembench.toolchains.registry import Toolchain

if TYPE_CHECKING:
    import numpy as np

    from smembench.model.problem import Array


class _Call:
    """A library call has no state: the program is all there is."""

    def launcher(self, program: LibraryCall, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """The call itself; the scalars are not passed, since the program knows the sizes."""
        return partial(program.enqueue, stream)

    def fill(self, variable: str, values: Array, stream: int) -> None:
        """Not possible: a library call has no variables."""
        raise LookupError(f"a library has no variable {variable}")

    def resources(self) -> Resources:
        """Unknown: the library decides which kernels it launches."""
        return Resources()


class Library(Toolchain[LibraryCall]):
    """Takes library calls, which need no compiler."""

    name = "library"
    kind = LibraryCall
    packages = ("cupy-cuda13x", "torch")

    def compile(self, case: Case, program: LibraryCall, capability: str) -> _Call:
        """Compiles nothing."""
        return _Call()


TOOLCHAIN = Library()
