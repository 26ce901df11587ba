"""Tiles whose rows lie apart in their matrix, copied and written by the Tensor Memory Accelerator (TMA).

The tensor map of such tiles has three dimensions (``TensorMap.apart``), and so have the instructions: the column, the
row modulo the distance, and the row divided by it. Otherwise ``bulk_copy`` and ``bulk_store`` apply.
"""

from __future__ import annotations

from functools import cache
from types import FunctionType

from smembench.kernels.intrinsics.bulk_copy import COPY, COPY_OPERANDS, start_copy
from smembench.kernels.intrinsics.bulk_store import STORE, STORE_OPERANDS, start_store
from smembench.kernels.intrinsics.clusters import COPY_TO_ALL, start_copy_to_all
from smembench.kernels.intrinsics.declaration import Operand, Ptx
from smembench.kernels.numba_cuda import DeviceFunction


@cache
def copying_rows(apart: int, *, to_all: bool = False) -> DeviceFunction:
    """``start_copy`` of tiles whose rows lie ``apart`` rows of the matrix from each other, a power of two.

    ``to_all``: ``start_copy_to_all``.
    """
    start, text = (start_copy_to_all, COPY_TO_ALL) if to_all else (start_copy, COPY)
    return _with_three_coordinates(start, text, COPY_OPERANDS, "$3", apart)


@cache
def storing_rows(apart: int) -> DeviceFunction:
    """``start_store`` of tiles whose rows lie ``apart`` rows of the matrix from each other, a power of two."""
    return _with_three_coordinates(start_store, STORE, STORE_OPERANDS, "$2", apart)


def _with_three_coordinates(
    start: DeviceFunction, text: str, operands: tuple[Operand, ...], row: str, apart: int
) -> DeviceFunction:
    """An intrinsic with two coordinates, in PTX the second ``row``, as one with three."""
    if apart == 1:
        return start
    assert isinstance(start, FunctionType)
    wide, bits = text.replace(".2d.", ".3d.").replace(row, "first, far"), apart.bit_length() - 1
    instruction = Ptx(
        f"{{ .reg .b32 first, far; and.b32 first, {row}, {apart - 1}; shr.u32 far, {row}, {bits}; {wide} }}", *operands
    )
    return instruction(FunctionType(start.__code__, start.__globals__))
