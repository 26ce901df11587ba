"""Case: what is to be measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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
        if self.block is not None:
            parts.append(f"b{self.block}")
        if self.pad is not None:
            parts.append(f"pad{self.pad}")
        return "/".join([*parts, self.cache])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; ``from_dict`` reads it back."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Case:
        """The case that ``to_dict`` wrote."""
        block = data.get("block")
        return cls(**{**data, "block": Block(*block) if block else None})
