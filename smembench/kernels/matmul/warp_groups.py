"""What the products by warp groups share: their tiles, tensor maps and epilogue.

A block's tile of C is computed from tiles of A and B in shared memory, 64 elements deep, which the Tensor Memory
Accelerator copies. Several pairs of them, stages, follow each other in shared memory: of A all rows, then of B 64
columns after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, expect_bytes, start_copy
from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.warp_group import DEPTH
from smembench.kernels.matmul.structs import Matrix, Place
from smembench.kernels.numba_cuda import DeviceFunction, device, uint32
from smembench.kernels.program import TensorMap
from smembench.kernels.types import Array, Index
from smembench.model.case import Case

_ITEMSIZE = 2
_PER_ROW = ROW_BYTES // _ITEMSIZE
_ALIGNED = 16 // _ITEMSIZE
"""A row of a matrix with a tensor map begins at a multiple of 16 bytes."""


class Maps(NamedTuple):
    """The tensor maps of A and B."""

    a: Index
    b: Index


class Stages(NamedTuple):
    """Stages in shared memory, and the barriers at which their tiles arrive."""

    tiles: Array
    arrived: Array


@dataclass(frozen=True, slots=True)
class Tile:
    """A block's tile of C: its sides, and how many stages are in shared memory."""

    rows: int
    columns: int
    stages: int = 1

    @property
    def a_elements(self) -> int:
        """Of a stage, elements of A; those of B follow."""
        return self.rows * DEPTH

    @property
    def elements(self) -> int:
        """Of a stage."""
        return (self.rows + self.columns) * DEPTH

    @property
    def shared_bytes(self) -> int:
        """Of all stages."""
        return self.tile_elements() * _ITEMSIZE

    def tile_elements(self, case: Case | None = None) -> int:
        """Of all stages, for every case."""
        return self.stages * self.elements

    def grid(self, case: Case) -> tuple[int, int]:
        """A block per tile."""
        return ceil_div(case.n, self.columns), ceil_div(case.m, self.rows)

    def maps(self, case: Case) -> tuple[TensorMap, TensorMap]:
        """Of A and B."""
        assert case.k is not None
        return TensorMap(1, case.m, case.k, case.k, self.rows), TensorMap(2, case.k, case.n, case.n, DEPTH)

    def copies(self) -> DeviceFunction:
        """``(stages, stage, maps, place, k0)``: for one thread, start the copies of a stage from k0 on."""
        a_elements, elements, columns = self.a_elements, self.elements, self.columns

        def copy(stages: Stages, stage: Index, maps: Maps, place: Place, k0: Index) -> None:
            at = stage * elements
            expect_bytes(stages.arrived, stage, elements * _ITEMSIZE)
            start_copy(stages.tiles, at, maps.a, k0, place.row, stages.arrived, stage)
            for column in range(0, columns, _PER_ROW):
                to = at + a_elements + uint32(column) * DEPTH
                start_copy(stages.tiles, to, maps.b, place.col + uint32(column), k0, stages.arrived, stage)

        return device(copy)


def epilogue(columns: int, dtype: str) -> DeviceFunction:
    """``(C, sums, place, thread)``: write a group's 64 rows of so many columns, where they are in C."""
    store, groups = store_pair(dtype), columns // 8

    def write(C: Matrix, sums: Array, place: Place, thread: Index) -> None:
        row = place.row + thread // 32 * 16 + thread % 32 // 4
        col = place.col + thread % 4 * 2
        for group in range(groups):
            for half in range(2):
                if row + uint32(half * 8) < C.rows and col + uint32(group * 8) < C.columns:
                    at = (row + uint32(half * 8)) * C.stride + col + uint32(group * 8)
                    store(C.elements, at, sums[group * 4 + half * 2], sums[group * 4 + half * 2 + 1])

    return device(write)


def unsupported(case: Case) -> str | None:
    """Rows that do not begin at multiples of 16 bytes, or None."""
    assert case.k is not None
    if odd := next((columns for columns in (case.k, case.n) if columns % _ALIGNED), None):
        return f"{case.kernel} copies tiles by the TMA, for which rows are a multiple of {_ALIGNED} elements, not {odd}"
    return None
