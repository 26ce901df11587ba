"""Tiles copied by the Tensor Memory Accelerator (TMA), and the barriers in shared memory at which they arrive.

One thread starts the copy of a whole tile, described by a tensor map (``kernels.program.TensorMap``); elements beyond
the matrix arrive as zeros. A barrier has a phase, 0 at first, that ends when all arrivals expected of it have been made
and all bytes announced to it have come (PTX ISA, "mbarrier", "cp.async.bulk.tensor"). Needs compute capability 9.0.

A tile has rows of 128 bytes, swizzled: chunk c of row r, 16 bytes, lies where chunk c ^ (r % 8) would; in rows of 64
bytes, where chunk c ^ (r // 2 % 4) would. So eight rows of a column of chunks lie in different banks.

In the simulator a copy is done at once.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from smembench.kernels.intrinsics.declaration import INTEGER, MAP, SHARED, Ptx
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device
from smembench.kernels.program import MAPPED_ROW_BYTES
from smembench.kernels.types import Array, Index, Map

if TYPE_CHECKING:
    from numpy.typing import NDArray

TILE_ALIGNMENT = 1024
"""Bytes to whose multiples tiles are aligned: eight rows, after which the swizzle repeats."""

ROW_BYTES, CHUNK = MAPPED_ROW_BYTES, 16
"""Bytes of a tile's row at most, and of the chunks that the swizzle moves."""

COPY_OPERANDS = (SHARED, MAP, INTEGER, INTEGER, SHARED)
COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4];"
"""The instruction of ``start_copy``, and its operands."""


@Ptx("mbarrier.init.shared::cta.b64 [$0], $1;", SHARED, INTEGER)
def set_barrier(barriers: Array, index: Index, arrivals: Index) -> None:
    """``mbarrier.init``: set up a barrier for ``arrivals`` per phase, before ``publish_barriers``."""
    barriers[index] = _State(int(arrivals), int(arrivals), 0, 0).word


@Ptx("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;")
def publish_barriers() -> None:
    """``fence.mbarrier_init``: make new barriers visible to copies; before the block's next ``cuda.syncthreads``."""


@Ptx("prefetch.tensormap [$0];", MAP)
def prefetch_map(source: Map) -> None:
    """``prefetch.tensormap``: fetch a tensor map before its first use."""


@Ptx("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", SHARED, INTEGER)
def expect_bytes(barriers: Array, index: Index, count: Index) -> None:
    """``mbarrier.arrive.expect_tx``: arrive at a barrier, and announce ``count`` bytes to it."""
    _change(barriers, index, 1, count)


@Ptx("mbarrier.arrive.shared::cta.b64 _, [$0];", SHARED)
def arrive(barriers: Array, index: Index) -> None:
    """``mbarrier.arrive``: arrive at a barrier."""
    _change(barriers, index, 1, 0)


@Ptx(
    "{ .reg .pred done; again${:uid}: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
    "@!done bra again${:uid}; }",
    SHARED,
    INTEGER,
)
def wait_for_phase(barriers: Array, index: Index, phase: Index) -> None:
    """``mbarrier.try_wait.parity``: wait until the phase of this parity has ended, as the one before the first has."""
    cuda.nanosleep(0)  # other threads run first, so that they write again what was released too early
    while _State.of(barriers[index]).phase == phase:
        cuda.nanosleep(0)


@Ptx(COPY, *COPY_OPERANDS)
def start_copy(tile: Any, place: Index, source: Map, column: Index, row: Index, barriers: Array, index: Index) -> None:
    """``cp.async.bulk.tensor``: start to copy the tile at (row, column) of a tensor map's matrix to shared memory.

    Args:
        tile: shared memory, aligned to ``TILE_ALIGNMENT``; so is ``place``.
        source: the tensor map that a launch passes.
        barriers, index: the barrier at which the tile's bytes arrive.
    """
    box = swizzled(source.box(int(row), int(column)))
    tile[place : place + box.size] = box
    complete_bytes(barriers, index, box.size * box.itemsize)


def complete_bytes(barriers: Array, index: Index, count: int) -> None:
    """In the simulator: bytes that were announced to a barrier have come."""
    _change(barriers, index, 0, -count)


def swizzled(box: NDArray[Any]) -> NDArray[Any]:
    """The elements of a tile, rows by columns, in the order in which they lie in shared memory."""
    tile = np.empty(box.size, box.dtype)
    row, column = np.indices(box.shape)
    tile[places_in_tile(box.itemsize, row, column, box.shape[1] * box.itemsize)] = box
    return tile


def row_bytes_of(columns: int, itemsize: int) -> int:
    """Bytes of the rows in which columns are copied: 128, or 64 where the columns' bytes are not a multiple of 128."""
    return ROW_BYTES if columns * itemsize % ROW_BYTES == 0 else ROW_BYTES // 2


def places_in_tile(itemsize: int, row: Any, column: Any, row_bytes: int = ROW_BYTES) -> Any:
    """Offsets of a swizzled tile's elements, in elements from its beginning."""
    return place_in_tile(itemsize, row_bytes)(row, column)


@cache
def place_in_tile(itemsize: int, row_bytes: int = ROW_BYTES) -> DeviceFunction:
    """``(row, column)``: ``places_in_tile`` in a kernel."""
    per_row, per_chunk = row_bytes // itemsize, CHUNK // itemsize
    per_line, chunks = ROW_BYTES // row_bytes, row_bytes // CHUNK

    def place(row: Index, column: Index) -> Index:
        return row * per_row + (column // per_chunk ^ row // per_line % chunks) * per_chunk + column % per_chunk

    return device(place)


class _State(NamedTuple):
    """The simulator's contents of a barrier: arrivals per phase, those and the bytes that are missing, the phase."""

    arrivals: int
    missing: int
    missing_bytes: int
    phase: int

    @classmethod
    def of(cls, word: Any) -> _State:
        value = int(word)
        return cls(value & 0xFFF, value >> 12 & 0xFFF, (value >> 24 & 0xFFFFFFFF) - 2**31, value >> 56)

    @property
    def word(self) -> int:
        return self.arrivals | self.missing << 12 | self.missing_bytes + 2**31 << 24 | self.phase << 56


def _change(barriers: Array, index: Index, arrivals: int, count: Any) -> None:
    """Count arrivals, and bytes that are announced (positive) or have come (negative)."""
    state = _State.of(barriers[index])
    missing, missing_bytes = state.missing - arrivals, state.missing_bytes + int(count)
    ended = missing == missing_bytes == 0
    barriers[index] = _State(
        state.arrivals, state.arrivals if ended else missing, missing_bytes, state.phase ^ ended
    ).word
