"""Predication, or boundary handling: how a block loads its tiles, with as few bounds checks as the sizes allow.

``whole tiles``: the sizes are multiples of the tile's, so no load is predicated. ``tiles moved inwards``: a tile over
an edge is moved up or left until it lies inside; some results are then computed and written by two blocks, in the same
order and so to the same bits. Along k the first tile is the short one, filled with zeros before the loop, so the loop
has no bounds checks. Otherwise, where a size is smaller than the tile, every load is predicated.
"""

from __future__ import annotations

from typing import NamedTuple

from smembench.kernels.intrinsics.vector import load_vector, store_vector
from smembench.kernels.matmul import tile_steps
from smembench.kernels.matmul.structs import Offsets, Operands, Share
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, device, uint32
from smembench.kernels.types import Index, Matrix
from smembench.model.case import Case


class Predication(NamedTuple):
    """The functions for one tiling and the sizes of one case; ``label`` says which of the three they are.

    ``origin(index, tile, side)``: the first row or column of a block's tile. ``short(k)``: by how much the first tile
    along k is shorter than the others. ``first(k, short)``: where that tile ends. ``start(A, B, share)``: where a
    thread's share of the tiles begins, for ``load_tiles(held, A, B, share, start, k0)``, which loads it at ``k0``;
    past the end it loads the last tiles again, or zeros.
    """

    label: str
    origin: DeviceFunction
    short: DeviceFunction
    first: DeviceFunction
    start: DeviceFunction
    load_tiles: DeviceFunction


def predication(tiling: Tiling, case: Case) -> Predication:
    """The functions with the fewest bounds checks that a case allows."""
    depth = tiling.depth
    sides = ((case.m, tiling.rows), (case.n, tiling.columns), (case.depth, depth))
    if any(side < tile for side, tile in sides):
        return _predicated(tiling, case)
    if all(side % tile == 0 for side, tile in sides):
        return Predication(
            "whole tiles", device(_in_grid), device(_nothing), tile_steps.all_of_k, *_unchecked(tiling, case)
        )

    def short(k: Index) -> Index:
        return depth - 1 - (k - 1) % depth

    def first(k: Index, short: Index) -> Index:
        return depth - short

    return Predication("tiles moved inwards", device(_inwards), device(short), device(first), *_unchecked(tiling, case))


def _predicated(tiling: Tiling, case: Case) -> Predication:
    """The functions with a bounds check per load."""
    load_checked = tile_steps.load_tiles(tiling, *tiling.widths(case))

    def load_tiles(held: Operands, A: Matrix, B: Matrix, share: Share, start: Offsets, k0: Index) -> None:
        load_checked(held, A, B, share.thread, share.corner, k0)

    return Predication(
        "", device(_in_grid), device(_nothing), tile_steps.all_of_k, device(_nowhere), device(load_tiles)
    )


def _in_grid(index: Index, tile: int, side: Index) -> Index:
    return index * tile


def _inwards(index: Index, tile: int, side: Index) -> Index:
    return min(index * tile, side - tile)


def _nothing(k: Index) -> Index:
    return uint32(0)


def _nowhere(A: Matrix, B: Matrix, share: Share) -> Offsets:
    return Offsets(uint32(0), uint32(0))


def _unchecked(tiling: Tiling, case: Case) -> tuple[DeviceFunction, DeviceFunction]:
    """``start`` and ``load_tiles`` for tiles without bounds checks."""
    a_width, b_width = tiling.widths(case)
    depth, threads = tiling.depth, tiling.threads
    a_across, b_across = depth // a_width, tiling.columns // b_width
    a_step, b_step = threads // a_across, threads // b_across
    a_count, b_count = tiling.rows // a_step, depth // b_step

    def start(A: Matrix, B: Matrix, share: Share) -> Offsets:
        a_col = share.thread % a_across * a_width
        b_col = share.corner.col + share.thread % b_across * b_width
        from_a = (share.corner.row + share.thread // a_across) * A.stride + a_col
        from_b = share.thread // b_across * B.stride + b_col
        return Offsets(from_a, from_b)

    def load_tiles(held: Operands, A: Matrix, B: Matrix, share: Share, start: Offsets, k0: Index) -> None:
        at_k = min(k0 - share.short, A.columns - depth)
        at_a = start.a + at_k
        at_b = start.b + at_k * B.stride
        for i in range(a_count):
            at = at_a + i * a_step * A.stride
            if a_width == 1:
                held.a[i] = A.elements[at]
            else:
                store_vector(held.a, i * a_width, load_vector(A.elements, at))
        for i in range(b_count):
            at = at_b + i * b_step * B.stride
            if b_width == 1:
                held.b[i] = B.elements[at]
            else:
                store_vector(held.b, i * b_width, load_vector(B.elements, at))

    return device(start), device(load_tiles)
