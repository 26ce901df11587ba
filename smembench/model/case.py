"""A case: one kernel on one device at one size, the unit that is measured."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from smembench.model.ranges import Count, Size
from smembench.model.user_launch import UserLaunch

DEFAULT_COMPILER = "numba"
"""The default compiler. Library calls and CPU functions are not compiled by it, but their cases carry its name."""

ENGINES = (DEFAULT_COMPILER, "mlir")
"""The compilers of Numba's dialect, which take the same Python functions: one declaration of a kernel serves them."""

UNIFORM = "uniform"
"""The inputs of most cases: each element equally likely to be any value of the problem's range."""

ROTATED = "rotated"
"""The cache mode whose launches take copies of their arrays in turn."""
CACHES = ("warm", "cold", ROTATED)

BY_ROWS, BY_COLUMNS = "rows", "columns"
"""Layouts of B, the second matrix of a product: row-major, or column-major like networks' weights."""


class Block(NamedTuple):
    """Block dimensions in threads, ``x`` first as in CUDA's ``dim3``."""

    x: Size
    y: Size

    def __str__(self) -> str:
        return f"{self.x}x{self.y}"


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel on a device at one size: everything that decides what runs.

    Attributes:
        m, n, k: sizes, in the problem's meaning. Transpose: the input has ``m`` rows and ``n`` columns. Matmul: an m×k
            matrix times a k×n matrix. Access: ``m`` passes of ``n`` threads. Others: one row of ``n`` elements.
        block: None for kernels without blocks.
        pad: extra columns of the shared tile; None for kernels without a tile.
        cache: ``warm``, ``cold`` or ``rotated``.
        compiler: the toolchain, or the library of a peer.
        stride: in elements, None by default. Matmul: the row stride of all three matrices. Access: the distance
            between lanes.
        parameters: the problem's own, by name; most problems have none.
        inputs: how the values of the inputs are distributed.
        b_layout: of a product, how B lies in memory.
        launch: of a kernel of the user's, all that decides its launch; None for the package's kernels.
    """

    problem: str
    kernel: str
    device: str
    dtype: str
    m: Size
    n: Size
    k: Size | None = None
    block: Block | None = None
    pad: Count | None = None
    cache: str = "warm"
    compiler: str = DEFAULT_COMPILER
    stride: Count | None = None
    parameters: tuple[tuple[str, Count], ...] = ()
    inputs: str = UNIFORM
    b_layout: str = BY_ROWS
    launch: UserLaunch | None = None

    @property
    def kind(self) -> str:
        """The kind of device: ``cuda`` or ``cpu``, without an index."""
        return self.device.partition(":")[0]

    @property
    def depth(self) -> int:
        """``k``, the terms of each element of a product.

        Raises:
            ValueError: for a case that is no product.
        """
        if self.k is None:
            raise ValueError(f"{self.problem} has no depth")
        return self.k

    @property
    def size(self) -> str:
        """The size as a user writes it: ``4096x4096``, or ``m x k x n`` without spaces."""
        return "x".join(str(side) for side in (self.m, self.k, self.n) if side is not None)

    @property
    def id(self) -> str:
        """The case's name in every run: ``transpose/transposeSmemPad/cuda:0/numba/…``.

        Inputs are named unless they are uniform, and so is B by columns, so that different cases are never taken for
        one.
        """
        parts = [self.problem, self.kernel, self.device, self.compiler, self.dtype, self.size]
        if self.stride is not None:
            parts.append(f"s{self.stride}")
        parts += [f"{name}={value}" for name, value in self.parameters]
        if self.inputs != UNIFORM:
            parts.append(f"inputs={self.inputs}")
        if self.b_layout != BY_ROWS:
            parts.append(f"b_layout={self.b_layout}")
        if self.block is not None:
            parts.append(f"b{self.block}")
        if self.pad is not None:
            parts.append(f"pad{self.pad}")
        return "/".join([*parts, self.cache])

    @property
    def setting(self) -> Case:
        """The conditions in which kernels are compared: the case without kernel, compiler, block and pad."""
        return replace(self, kernel="", compiler="", block=None, pad=None, launch=None)

    @property
    def by_other_engine(self) -> Case | None:
        """The same by the other engine of Numba's dialect; None for a case that no engine compiles."""
        others = dict(zip(ENGINES, reversed(ENGINES), strict=True))
        return replace(self, compiler=others[self.compiler]) if self.compiler in others else None

    def parameter(self, name: str) -> int:
        """The value of a parameter of the problem."""
        return dict(self.parameters)[name]


def parameters_of(case_id: str) -> tuple[tuple[str, int], ...]:
    """The parameters in a case's id; cases.csv has no columns for them."""
    if "=" not in case_id:
        return ()
    return tuple((name, int(value)) for name, value in re.findall(r"/([A-Za-z][A-Za-z0-9_]*)=(\d{1,30})(?=/)", case_id))
