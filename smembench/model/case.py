"""Case: what is to be measured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

DEFAULT_COMPILER = "numba"
"""The compiler of cases unless another is asked for. Copies and functions on the CPU have none and bear its name."""


class Block(NamedTuple):
    """Block dimensions in threads, ``x`` first as in CUDA's ``dim3``."""

    x: int
    y: int

    def __str__(self) -> str:
        return f"{self.x}x{self.y}"


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel on one device at one size: everything that decides what is run.

    Sizes follow the problem. Transpose: the input has ``m`` rows (ny) and ``n`` columns (nx), ``k`` is None.
    Matmul: an m×k matrix times a k×n matrix. Access: ``m`` passes of ``n`` threads. ``block`` is None for kernels
    without blocks, ``pad`` (extra columns of the shared tile) is None for kernels without a tile. ``stride`` is None
    unless it was asked for: the row stride of all three matrices of a product, or from lane to lane, in elements.
    ``parameters`` are the problem's own, by name; most problems have none.
    """

    problem: str
    kernel: str
    device: str
    dtype: str
    m: int
    n: int
    k: int | None = None
    block: Block | None = None
    pad: int | None = None
    cache: str = "warm"
    compiler: str = DEFAULT_COMPILER
    stride: int | None = None
    parameters: tuple[tuple[str, int], ...] = ()

    @property
    def kind(self) -> str:
        """The kind of device, ``cuda`` or ``cpu``, without its index."""
        return self.device.partition(":")[0]

    @property
    def size(self) -> str:
        """The size as people write it, ``4096x4096`` or ``m x k x n`` without blanks."""
        return "x".join(str(side) for side in (self.m, self.k, self.n) if side is not None)

    @property
    def id(self) -> str:
        """A name that is the same in every run: ``transpose/transposeSmemPad/cuda:0/numba/…``."""
        parts = [self.problem, self.kernel, self.device, self.compiler, self.dtype, self.size]
        if self.stride is not None:
            parts.append(f"s{self.stride}")
        parts += [f"{name}={value}" for name, value in self.parameters]
        if self.block is not None:
            parts.append(f"b{self.block}")
        if self.pad is not None:
            parts.append(f"pad{self.pad}")
        return "/".join([*parts, self.cache])

    def parameter(self, name: str) -> int:
        """The value of a parameter of the problem."""
        return dict(self.parameters)[name]


def parameters_of(case_id: str) -> tuple[tuple[str, int], ...]:
    """The parameters that the id of a case has, which cases.csv has no columns for."""
    return tuple((name, int(value)) for name, value in re.findall(r"/([a-z][a-z0-9_]*)=(\d+)(?=/)", case_id))
