"""Libraries: calls that enqueue work whose code is compiled already, such as cuBLAS's and cudaMemcpy's."""

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
    """Nothing of its own: all is in the program."""

    def launcher(self, program: LibraryCall, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """The call; a library takes sizes its own way."""
        return partial(program.enqueue, stream)

    def fill(self, variable: str, values: Array, stream: int) -> None:
        """There is no variable to fill."""
        raise LookupError(f"a library has no variable {variable}")

    def resources(self) -> Resources:
        """Unknown: which kernels a library launches is its own affair."""
        return Resources()


class Library(Toolchain[LibraryCall]):
    """Nothing to compile."""

    name = "library"
    kind = LibraryCall
    packages = ("cupy-cuda13x", "torch")

    def compile(self, case: Case, program: LibraryCall, capability: str) -> _Call:
        """Nothing is."""
        return _Call()


TOOLCHAIN = Library()
