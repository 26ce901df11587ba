"""Products of tiles in shared memory by a warp group, four warps together: ``wgmma`` (compute capability 9.0).

After ``begin_products`` a warp group starts products that add to its sums, the accumulators, and commits them. The sums
may be read after ``finish_products``. How tiles are laid out: ``operands``.

With the operands swapped the product is the transpose: its 64 rows are columns of B, and its columns are rows of A.

The sums, 64 rows by n columns, are shared out among the warp group's 128 threads. Thread t has row
16·(t // 32) + t % 32 // 4 and the one 8 below, and of each 8 columns the two from 2·(t % 4) on: four sums per 8
columns, by rows (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16").

In the simulator products are computed when their threads wait for them (``deferred``).
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES
from smembench.kernels.intrinsics.declaration import INTEGER, LITERAL, UNUSED, Ptx, changed, types
from smembench.kernels.intrinsics.deferred import Groups, InFlight
from smembench.kernels.intrinsics.operands import (
    STEP_BYTES,
    Operand,
    advance,
    depth_of,
    described,
    operand_b,
    places_of_elements,
)
from smembench.kernels.numba_cuda import DeviceFunction, cuda, number
from smembench.kernels.types import Array, Index
from smembench.model.formats import FLOAT8, TF32, widened
from smembench.model.problem import ITEMSIZE

if TYPE_CHECKING:
    from numpy.typing import NDArray

GROUP, ROWS = 128, 64
"""Threads of a warp group; rows of its products."""

GROUP_BARRIER = "syncgroup"
"""The name of a group's barrier in the simulator's ``cuda``."""

_PRODUCTS, _SUMS = Groups("the tensor cores"), InFlight()
_OWN_GROUP = (
    f"{{ .reg .u32 g; mov.u32 g, %tid.x; shr.u32 g, g, {GROUP.bit_length() - 1}; shfl.sync.idx.b32 $0, g, 0, 31, -1; }}"
)
_FORMATS = {"float16": "f16", "bfloat16": "bf16", TF32: "tf32", FLOAT8: "e4m3"}


@Ptx(_OWN_GROUP, result=types.uint32, memory=False)
def own_group() -> Index:
    """The number of this thread's warp group in its block, along x.

    A warp's lanes take it from the first one, so that the compiler knows that it is the same for all: what follows from
    it, such as where tiles begin, is computed once per warp, in uniform registers, from which ``wgmma`` takes it.
    """
    group: Index = cuda.threadIdx.x // GROUP
    return group


@Ptx(f"bar.sync $0, {GROUP};", INTEGER)
def meet_group(number: Index) -> None:
    """Barrier of this warp group alone (``bar.sync``); its number in the block, not 0, is that of the barrier."""
    if hasattr(cuda, GROUP_BARRIER):
        getattr(cuda, GROUP_BARRIER)()


@Ptx("wgmma.fence.sync.aligned;")
def begin_products() -> None:
    """``wgmma.fence``: order accesses of the sums' registers before the products that follow."""


@Ptx("wgmma.commit_group.sync.aligned;")
def commit_products() -> None:
    """``wgmma.commit_group``: commit the products started since the last commit as a group."""
    _PRODUCTS.commit()


@Ptx("wgmma.wait_group.sync.aligned %literal;", LITERAL)
def finish_products(newest: int) -> None:
    """``wgmma.wait_group``: wait until all committed groups but the ``newest`` ones, a constant, are complete."""
    _PRODUCTS.finish(newest)


@Ptx("setmaxnreg.inc.sync.aligned.u32 %literal;", LITERAL)
def add_registers(count: int) -> None:
    """``setmaxnreg.inc``: raise the registers per thread to this total, a constant; for all warps of a warp group."""


@Ptx("setmaxnreg.dec.sync.aligned.u32 %literal;", LITERAL)
def give_registers(count: int) -> None:
    """``setmaxnreg.dec``: lower the registers per thread to this total, a constant; for all warps of a warp group."""


@cache
def products(
    columns: int, dtype: str, b_layout: str, first: int = 0, *, swapped: bool = False, fresh: bool = False
) -> DeviceFunction:
    """``(sums, of_left, at_left, of_right, at_right, thread)``: start the products of a tile of A and one of B.

    ``sums``: the thread's, ``columns // 2`` of them from ``first`` on. ``of_left``, ``at_left``: shared memory, and
    where in it, in elements, the tile begins whose rows are those of the product; the others: the other tile's.
    ``thread``: its number in the warp group. B's tile has ``columns`` columns. If the operands are ``swapped`` the left
    tile is B's, and ``columns`` are rows of A. If the products are ``fresh`` they replace the sums.
    """
    groups = columns // 8
    left, right = Operand("A", ROWS), operand_b(columns, dtype, b_layout)
    if swapped:
        left, right = operand_b(ROWS, dtype, b_layout), Operand("A", columns)

    @Ptx(
        _wgmma(columns, dtype, left, right, fresh=fresh),
        changed(columns // 2).at(first),
        described(left, number(dtype)),
        described(right, number(dtype)),
        UNUSED,
    )
    def start(sums: Any, of_left: Array, at_left: Index, of_right: Array, at_right: Index, thread: Index) -> None:
        within = _places_read(columns, left, right, int(thread), dtype)
        places = (of_left, int(at_left) + within[0]), (of_right, int(at_right) + within[1])
        change = _SUMS.changing(sums[first : first + columns // 2])

        def multiply(*read: NDArray[Any]) -> None:
            rows, wanted = (widened(array, dtype, "float32") for array in read)
            sums = (rows @ wanted.T).reshape(2, groups, 2).transpose(1, 0, 2).ravel()
            change(lambda before: sums if fresh else before + sums)

        _PRODUCTS.start(lambda: tuple(tiles[place] for tiles, place in places), multiply)

    return start


@cache
def settling(count: int, first: int = 0) -> DeviceFunction:
    """``(sums)``: keep the compiler from reading ``count`` sums, from ``first`` on, before the wait ahead of this call.

    wgmma is asynchronous, but to the compiler its results are there when it is issued, so it might read them earlier.
    """

    @Ptx("", changed(count).at(first))
    def settle(sums: Array) -> None:
        pass

    return settle


def places_of_sums(columns: int, thread: int) -> tuple[Any, Any]:
    """The two rows and the ``columns // 4`` columns of a thread's sums."""
    lane = thread % 32
    rows = 16 * (thread // 32) + lane // 4 + np.array([0, 8])
    pairs = 8 * np.arange(columns // 8)[:, None] + 2 * (lane % 4) + np.array([0, 1])
    return rows, pairs.ravel()


@lru_cache(2 * GROUP)
def _places_read(columns: int, left: Operand, right: Operand, thread: int, dtype: str) -> tuple[Any, ...]:
    """Offsets of the rows and columns of a thread's sums in two operands."""
    both = zip((left, right), places_of_sums(columns, thread), strict=True)
    return tuple(places_of_elements(operand, which, ITEMSIZE[dtype], depth_of(dtype)) for operand, which in both)


def _wgmma(columns: int, dtype: str, left: Operand, right: Operand, *, fresh: bool) -> str:
    """Four instructions; each has the next 32 bytes along k of both operands. A fresh first one adds to nothing."""
    count, kind, step_k = columns // 2, _FORMATS[dtype], STEP_BYTES // ITEMSIZE[dtype]
    sums = "{" + ",".join(f"${i}" for i in range(count)) + "}"
    transposed = f", {int(left.transposed)}, {int(right.transposed)}" if ITEMSIZE[dtype] == 2 else ""
    along_a, along_b = (advance(operand, step_k) for operand in (left, right))
    return "".join(
        f"{{ .reg .b64 a, b; add.s64 a, ${count}, {along_a * step}; add.s64 b, ${count + 1}, {along_b * step}; "
        f"wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k{step_k}.f32.{kind}.{kind} "
        f"{sums}, a, b, {int(step > 0 or not fresh)}, 1, 1{transposed}; }}\n"
        for step in range(ROW_BYTES // STEP_BYTES)
    )
