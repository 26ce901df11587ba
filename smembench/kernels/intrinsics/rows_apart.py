"""Tiles whose rows lie apart in their matrix, copied and written by the Tensor Memory Accelerator (TMA).

The tensor map of such tiles has three dimensions (``TensorMap.apart``), and so have the instructions: the column, the
row modulo the distance, and the row divided by it. Otherwise ``bulk_copy`` and ``bulk_store`` apply.
"""

from __future__ import annotations

from functools import cache

from smembench.kernels.intrinsics.bulk_copy import COPY, LOAD, lower_copy, start_copy, type_copy
from smembench.kernels.intrinsics.bulk_store import STORE, TILE_STORE, lower_store, start_store, type_store
from smembench.kernels.intrinsics.lowering import register
from smembench.kernels.numba_cuda import DeviceFunction
from smembench.kernels.types import Array, Index


@cache
def copying_rows(apart: int) -> DeviceFunction:
    """``start_copy`` of tiles whose rows lie ``apart`` rows of the matrix from each other, a power of two."""
    if apart == 1:
        return start_copy

    def start(
        tile: Array, place: Index, source: Index, column: Index, row: Index, barriers: Array, index: Index
    ) -> None:
        start_copy(tile, place, source, column, row, barriers, index)

    register(start, type_copy, lower_copy(_with_three_coordinates(LOAD, "$3", apart)), *COPY)
    return start


@cache
def storing_rows(apart: int) -> DeviceFunction:
    """``start_store`` of tiles whose rows lie ``apart`` rows of the matrix from each other, a power of two."""
    if apart == 1:
        return start_store

    def start(target: Index, column: Index, row: Index, tile: Array, place: Index) -> None:
        start_store(target, column, row, tile, place)

    register(start, type_store, lower_store(_with_three_coordinates(STORE, "$2", apart)), *TILE_STORE)
    return start


def _with_three_coordinates(assembly: str, row: str, apart: int) -> str:
    """A PTX instruction with two coordinates, the second ``row``, as one with three."""
    wide = assembly.replace(".2d.", ".3d.").replace(row, "first, far")
    bits = apart.bit_length() - 1
    return f"{{ .reg .b32 first, far; and.b32 first, {row}, {apart - 1}; shr.u32 far, {row}, {bits}; {wide} }}"
