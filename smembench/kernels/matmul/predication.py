"""Boundary handling: how a block loads its tiles, by what the case's sizes allow.

``whole tiles``: the sizes are multiples of the tile's, so no load is predicated. ``tiles moved inwards``: a tile over
an edge is moved up or left until it lies inside; two blocks then compute and write some results, in the same order and
to the same bits. Along k the first tile is the short one, filled with zeros before the loop, so the loop has no bounds
checks. Otherwise, where a size is smaller than the tile, every load is predicated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from smembench.kernels.intrinsics.vector import load_vector, store_vector
from smembench.kernels.matmul.tile_steps import load_a, load_b
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, device, uint32
from smembench.model.case import Case


class Predication(NamedTuple):
    """The functions for one tiling and the sides of one case.

    ``origin(index, tile, side)``: the first row or column of a block's tile. ``short(k)``: by how much the first tile
    along k is shorter than the others; positions along k begin that much before its first element. ``first(k, short)``:
    where that tile ends. ``begin(thread, row0, col0, lda, ldb)``: where a thread's share begins, for ``load(a_held,
    b_held, a, b, from_a, from_b, thread, row0, col0, k0, short, m, n, k, lda, ldb)``, which loads the tiles at ``k0``;
    past the end it loads the last ones again, or zeros.
    """

    label: str
    origin: DeviceFunction
    short: DeviceFunction
    first: DeviceFunction
    begin: DeviceFunction
    load: DeviceFunction


def predication(tiling: Tiling, case: Case) -> Predication:
    """The functions with the fewest bounds checks that a case allows."""
    assert case.k is not None
    depth = tiling.depth
    sides = ((case.m, tiling.rows), (case.n, tiling.columns), (case.k, depth))
    if any(side < tile for side, tile in sides):
        return predicated(tiling, case)
    if all(side % tile == 0 for side, tile in sides):
        return Predication("whole tiles", device(_in_grid), device(_nothing), device(_all), *_straight(tiling, case))

    def short(k: Any) -> Any:
        return depth - 1 - (k - 1) % depth

    def first(k: Any, short: Any) -> Any:
        return depth - short

    return Predication("tiles moved inwards", device(_inwards), device(short), device(first), *_straight(tiling, case))


def predicated(tiling: Tiling, case: Case) -> Predication:
    """The functions with a bounds check per load."""
    a_width, b_width = tiling.widths(case)
    of_a, of_b = load_a(tiling, a_width), load_b(tiling, b_width)

    def load(
        a_held: Any, b_held: Any, a: Any, b: Any, from_a: Any, from_b: Any, thread: Any, row0: Any, col0: Any,
        k0: Any, short: Any, m: Any, n: Any, k: Any, lda: Any, ldb: Any,
    ) -> None:  # fmt: skip
        of_a(a_held, a, thread, row0, k0, m, k, lda)
        of_b(b_held, b, thread, col0, k0, n, k, ldb)

    return Predication("", device(_in_grid), device(_nothing), device(_all), device(_nowhere), device(load))


def _in_grid(index: Any, tile: Any, side: Any) -> Any:
    return index * tile


def _inwards(index: Any, tile: Any, side: Any) -> Any:
    return min(index * tile, side - tile)


def _nothing(k: Any) -> Any:
    return uint32(0)


def _all(k: Any, short: Any) -> Any:
    return k


def _nowhere(thread: Any, row0: Any, col0: Any, lda: Any, ldb: Any) -> Any:
    return uint32(0), uint32(0)


def _straight(tiling: Tiling, case: Case) -> tuple[DeviceFunction, DeviceFunction]:
    """``begin`` and ``load`` for tiles without bounds checks."""
    a_width, b_width = tiling.widths(case)
    depth, threads = tiling.depth, tiling.threads
    a_across, b_across = depth // a_width, tiling.columns // b_width
    a_step, b_step = threads // a_across, threads // b_across
    a_count, b_count = tiling.rows // a_step, depth // b_step

    def begin(thread: Any, row0: Any, col0: Any, lda: Any, ldb: Any) -> Any:
        a_col = thread % a_across * a_width
        b_col = col0 + thread % b_across * b_width
        from_a = (row0 + thread // a_across) * lda + a_col
        from_b = thread // b_across * ldb + b_col
        return from_a, from_b

    def load(
        a_held: Any, b_held: Any, a: Any, b: Any, from_a: Any, from_b: Any, thread: Any, row0: Any, col0: Any,
        k0: Any, short: Any, m: Any, n: Any, k: Any, lda: Any, ldb: Any,
    ) -> None:  # fmt: skip
        at_k = min(k0 - short, k - depth)
        at_a = from_a + at_k
        at_b = from_b + at_k * ldb
        for i in range(a_count):
            at = at_a + i * a_step * lda
            if a_width == 1:
                a_held[i] = a[at]
            else:
                store_vector(a_held, i * a_width, load_vector(a, at))
        for i in range(b_count):
            at = at_b + i * b_step * ldb
            if b_width == 1:
                b_held[i] = b[at]
            else:
                store_vector(b_held, i * b_width, load_vector(b, at))

    return device(begin), device(load)
