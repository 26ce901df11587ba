"""Tiles whose rows lie apart in their matrix, copied and written by the Tensor Memory Accelerator (TMA).

The tensor map of such tiles has three dimensions (``TensorMap.apart``), and so have the instructions: the column, the
row modulo the distance, and the row divided by it. Otherwise ``bulk_copy`` and ``bulk_store`` apply.
"""

from __future__ import annotations

from functools import cache

from smembench.kernels.intrinsics.bulk_copy import COPY, COPY_OPERANDS, start_copy
from smembench.kernels.intrinsics.bulk_store import STORE, STORE_OPERANDS, start_store
from smembench.kernels.intrinsics.lowering import Ptx
from smembench.kernels.numba_cuda import DeviceFunction
from smembench.kernels.types import Array, Index


@cache
def copying_rows(apart: int) -> DeviceFunction:
    """``start_copy`` of tiles whose rows lie ``apart`` rows of the matrix from each other, a power of two."""
    if apart == 1:
        return start_copy

    @Ptx(_with_three_coordinates(COPY, "$3", apart), *COPY_OPERANDS)
    def start(
        tile: Array, place: Index, source: Index, column: Index, row: Index, barriers: Array, index: Index
    ) -> None:
        start_copy(tile, place, source, column, row, barriers, index)

    return start


@cache
def storing_rows(apart: int) -> DeviceFunction:
    """``start_store`` of tiles whose rows lie ``apart`` rows of the matrix from each other, a power of two."""
    if apart == 1:
        return start_store

    @Ptx(_with_three_coordinates(STORE, "$2", apart), *STORE_OPERANDS)
    def start(target: Index, column: Index, row: Index, tile: Array, place: Index) -> None:
        start_store(target, column, row, tile, place)

    return start


def _with_three_coordinates(assembly: str, row: str, apart: int) -> str:
    """A PTX instruction with two coordinates, the second ``row``, as one with three."""
    wide = assembly.replace(".2d.", ".3d.").replace(row, "first, far")
    bits = apart.bit_length() - 1
    return f"{{ .reg .b32 first, far; and.b32 first, {row}, {apart - 1}; shr.u32 far, {row}, {bits}; {wide} }}"
