"""Tensor cores: products of small matrices in the registers of a warp (``mma.sync``), and how they get there.

``mma.sync.m16n8k16`` (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"): of a 16×16 matrix A, a
16×8 matrix B and a 16×8 matrix of float32 sums, each of a warp's 32 lanes holds a part. With g = lane // 4 and
t = lane % 4, and two 16-bit elements to a register, the lower half first:

| registers | have |
|---|---|
| A: 0 and 2 | row g, columns 2t, 2t+1 and 8 more |
| A: 1 and 3 | row g + 8, the same columns |
| B: 0 and 1 | column g, rows 2t, 2t+1 and 8 more |
| sums: 0, 1 | row g, columns 2t, 2t+1 |
| sums: 2, 3 | row g + 8, the same columns |

``ldmatrix`` (PTX ISA, "ldmatrix") loads four 8×8 matrices from shared memory: lane l has the address of row l % 8 of
matrix l // 8, 16 bytes that begin at a multiple of 16, and gets of each matrix what the table says of A's register 0.
Transposed it gets column g, rows 2t and 2t+1. Shared memory serves a matrix, eight rows of 16 bytes, at a time.

``stmatrix`` (PTX ISA, "stmatrix") stores four such matrices the other way, by the same addresses.

All need compute capability 8.0, ``stmatrix`` 9.0, and all lanes of the warp. In the simulator lanes exchange what they
have by shuffles; in a trace they access the same addresses, and values mean nothing.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np

from smembench.kernels.intrinsics.declaration import (
    BYTES,
    PLACE,
    SHARED,
    UNUSED,
    Ptx,
    Type,
    changed,
    loaded,
    register,
    types,
    written,
)
from smembench.kernels.intrinsics.halves import PTX
from smembench.kernels.intrinsics.lowering import WORD, Code, Value
from smembench.kernels.numba_cuda import DeviceFunction, cuda, number
from smembench.kernels.types import Array, Index, Scalar
from smembench.model import formats

ALL_LANES = 0xFFFFFFFF
MATRICES = 4
"""8×8 matrices per ``ldmatrix``, and registers that they fill."""
A_REGISTERS, B_REGISTERS, SUMS = 4, 2, 4
"""Registers of a fragment of A, of one of B, and of their sums, per lane."""
_LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];"
_MULTIPLY = "mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 {$0,$1,$2,$3}, {$4,$5,$6,$7}, {$8,$9}, {$0,$1,$2,$3};"
_STORE = (
    "{ .reg .b32 a, b, c, d; cvt.rn.%sx2.f32 a, $2, $1; cvt.rn.%sx2.f32 b, $4, $3; cvt.rn.%sx2.f32 c, $6, $5; "
    "cvt.rn.%sx2.f32 d, $8, $7; stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [$0], {a, b, c, d}; }"
)


def _halves(low: Type, high: Type) -> bool:
    return bool(low == high and low.bitwidth == 16)


def _words_of_halves(fragments: Type, place: Type, tile: Type, index: Type, lane: Type) -> bool:
    return bool(fragments.dtype == types.uint32 and tile.dtype.bitwidth == 16)


def pack(low: Scalar, high: Scalar) -> Any:
    """Two 16-bit elements as a register."""
    first, second = (int(np.asarray(half).view(np.uint16)) for half in (low, high))
    return np.uint32(first | second << 16)


def load_two(tile: Array, index: Index) -> Any:
    """Two elements from an even ``index`` on as a register, in one access."""
    return pack(*tile[index : index + 2])


@Ptx(_LOAD, written(MATRICES), SHARED, UNUSED, fits=_words_of_halves)
def load_matrices(fragments: Array, place: Index, tile: Array, index: Index, lane: Index) -> None:
    """``ldmatrix``: load four matrices into registers from ``place`` on; this lane's row begins at ``index``.

    Raises:
        ValueError: in the simulator, for an index that is not a multiple of 8.
    """
    given = _of_lanes(tile[_row(tile, index)], [8 * matrix + lane // 4 for matrix in range(MATRICES)])
    for matrix, row in enumerate(given):
        fragments[place + matrix] = pack(*(row[lane % 4 * 2 + half] for half in (0, 1)))


@Ptx(_LOAD.replace(".x4", ".x4.trans"), written(MATRICES), SHARED, UNUSED, fits=_words_of_halves)
def load_matrices_transposed(fragments: Array, place: Index, tile: Array, index: Index, lane: Index) -> None:
    """The same as load_matrices, with transposed matrices.

    Raises:
        ValueError: as load_matrices.
    """
    lanes = [8 * matrix + lane % 4 * 2 + half for matrix in range(MATRICES) for half in (0, 1)]
    given = _of_lanes(tile[_row(tile, index)], lanes)
    for matrix in range(MATRICES):
        fragments[place + matrix] = pack(*(row[lane // 4] for row in given[2 * matrix : 2 * matrix + 2]))


def _row(tile: Array, index: Index) -> slice:
    if index % (BYTES // tile.itemsize):
        raise ValueError(f"index {index}: a row of a matrix begins at a multiple of 8 elements")
    return slice(index, index + BYTES // tile.itemsize)


def _of_lanes(value: Any, lanes: list[Any]) -> list[Any]:
    """The ``value`` of each of these lanes, by one shuffle of the simulator."""
    given: Any = cuda.shfl_sync(ALL_LANES, value, lanes)
    return list(given)


@cache
def multiply_matrices(dtype: str, down: int, across: int) -> DeviceFunction:
    """``(accumulators, a, b, lane)``: add the products of ``down`` fragments of A and ``across`` of B, of this type.

    The sums of the product of A's i-th and B's j-th begin at ``4 * (i * across + j)`` in ``accumulators``.
    """

    def multiply(accumulators: Array, a: Array, b: Array, lane: Index) -> None:
        mine = [tuple(a[i] for i in range(A_REGISTERS * down)), tuple(b[i] for i in range(B_REGISTERS * across))]

        firsts = lane // 4 * 4, lane % 4 * 8, lane % 4 * 8 + 4
        given = _of_lanes(mine, [first + i for first in firsts for i in range(4)])

        def of(first: int, part: int) -> Any:
            """The parts of four lanes, as numbers: (lane, register, half)."""
            halves = np.array([words[part] for words in given[first : first + 4]], np.uint32)[..., None].view(np.uint16)
            return formats.widened(halves, dtype, "float64")

        # In order of k: the half of 8, the lane, the half of the register.
        rows = of(0, 0).reshape(4, down, 2, 2, 2).transpose(1, 3, 2, 0, 4).reshape(down, 2, 16)
        columns = [of(first, 1).reshape(4, across, 2, 2).transpose(1, 2, 0, 3) for first in (4, 8)]
        sums = np.einsum("ihk,cjk->ijhc", rows, np.array(columns).reshape(2, across, 16))
        for i, value in enumerate(sums.reshape(-1)):
            accumulators[i] += value

    text, results = _MULTIPLY.replace("%s", PTX[dtype]), product(range(down), range(across))
    sums, left, right = changed(SUMS), loaded(A_REGISTERS), loaded(B_REGISTERS)
    products = (
        Ptx(text, sums.at(SUMS * (i * across + j)), left.at(A_REGISTERS * i), right.at(B_REGISTERS * j), memory=False)
        for i, j in results
    )
    return register(multiply, tuple(products), *[types.Array] * 3, types.Integer)


@cache
def store_matrices_transposed(dtype: str) -> DeviceFunction:
    """``(tile, index, sums, first, lane)``: round eight sums, two per matrix, and store four matrices transposed.

    ``index`` is where this lane's row begins in the tile. A lane's two sums of a matrix, from ``first`` on, go to
    column g, rows 2t and 2t+1.
    """

    def fits(tile: Type, index: Type, sums: Type, first: Type, lane: Type) -> bool:
        return bool(tile.dtype == number(dtype) and sums.dtype == types.float32)

    @Ptx(_STORE.replace("%s", PTX[dtype]), SHARED, loaded(2 * MATRICES), UNUSED, fits=fits)
    def store_transposed(tile: Array, index: Index, sums: Array, first: Index, lane: Index) -> None:
        mine = tuple(formats.rounded(np.asarray(sums[first : first + 2 * MATRICES], np.float32), dtype))
        given = _of_lanes(mine, [4 * column + lane % 8 // 2 for column in range(8)])
        tile[_row(tile, index)] = tuple(values[lane // 8 * 2 + lane % 2] for values in given)

    return store_transposed


# As PTX text it would change the order of loads in mmaPlain.
def _pack(code: Code, low: Value, high: Value) -> Any:
    first, second = (code.builder.zext(half.ir, WORD) for half in (low, high))
    return code.builder.or_(first, code.builder.shl(second, WORD(16)))


# As loads of vectors are: LLVM finds the array's space.
def _load_two(code: Code, tile: Value, index: Value) -> Any:
    return code.load(code.pointer(tile, index), WORD, WORD.width // 8)


register(pack, _pack, types.Number, types.Number, fits=_halves, result=types.uint32)
register(load_two, _load_two, *PLACE, fits=lambda tile, index: tile.dtype.bitwidth == 16, result=types.uint32)
