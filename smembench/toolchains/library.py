"""Library calls, such as cuBLAS and cudaMemcpy: they enqueue code that is already compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from smembench.kernels.program import LibraryCall
from smembench.model.case import Case
from smembench.toolchains.registry import Compiled, Toolchain

if TYPE_CHECKING:
    import numpy as np


class _Call(Compiled[LibraryCall]):
    def launcher(self, program: LibraryCall, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """The call itself; the scalars are not passed, because the program knows the sizes."""
        return partial(program.enqueue, stream)


class Library(Toolchain[LibraryCall]):
    """Takes library calls, which need no compiler."""

    name = "library"
    kind = LibraryCall
    packages = ("cupy-cuda13x", "torch")

    def compile(self, case: Case, program: LibraryCall, capability: str) -> _Call:
        """Compiles nothing."""
        return _Call()


TOOLCHAIN = Library()
