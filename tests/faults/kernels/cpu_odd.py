"""CPU kernels that fail oddly: by a signal without a name, and by errors whose text cannot be printed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.model.case import Case


class Unspeakable(BaseException):
    """An error without a text."""

    def __str__(self) -> str:
        raise ValueError


def signals(*arrays: Any) -> None:
    """End the worker by a real-time signal."""
    os.kill(os.getpid(), 40)


def babbles(*arrays: Any) -> None:
    """Raise a text with an escape sequence and half a surrogate pair."""
    raise ValueError("\x1b[31mred\udc80")


def mumbles(*arrays: Any) -> None:
    """Raise what cannot be printed."""
    raise Unspeakable


def _kernel(function: Callable[..., None]) -> Kernel:
    def build(case: Case) -> HostFunction:
        return HostFunction(function)

    name = function.__name__
    return Kernel("transpose", name, "cpu", 90, "fails", build, computes="transpose", blocks=False)


KERNELS = tuple(map(_kernel, (signals, babbles, mumbles)))
