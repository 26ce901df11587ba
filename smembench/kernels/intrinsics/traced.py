"""What kernels find in a trace in place of a module's own arrays, and of waiting for other blocks."""

from __future__ import annotations

from typing import Any

from smembench.kernels.intrinsics.declaration import register, types
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.types import Array, Index

OF_MODULE = "of_module"
"""The name of the function of a trace's ``cuda`` for ``of_module``."""


def traced() -> bool:
    """Whether the kernel runs in a trace, whose few blocks cannot do what a whole grid shares."""
    return hasattr(cuda, OF_MODULE)


def of_module(name: str, elements: int, dtype: str) -> Array:
    """In a trace: a module's array of that name in global memory, with addresses but no content."""
    array: Array = getattr(cuda, OF_MODULE)(name, elements, dtype)
    return array


def load_waiting(array: Array, index: Index) -> Any:
    """Load once what a block loads until another one has stored it: in a trace, and in the simulator."""
    return array[index]


register(traced, (), result=types.boolean, constant=False)
