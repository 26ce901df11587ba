"""Tiles copied by the Tensor Memory Accelerator (TMA), and the barriers in shared memory at which they arrive.

One thread starts the copy of a whole tile, described by a tensor map (``kernels.program.TensorMap``); elements beyond
the matrix arrive as zeros. A barrier has a phase, 0 at first, that ends when all arrivals expected of it have been made
and all bytes announced to it have come (PTX ISA, "mbarrier", "cp.async.bulk.tensor"). Needs compute capability 9.0.

A tile has rows of 128 bytes, swizzled: chunk c of row r, 16 bytes, lies where chunk c ^ (r % 8) would; in rows of 64
bytes, where chunk c ^ (r // 2 % 4) would. So eight rows of a column of chunks lie in different banks.

In the simulator a copy is done at once. A trace records copies, which are no accesses of threads, and which threads set
up and use a barrier; no wait waits.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir

from smembench.kernels.intrinsics.lowering import (
    Context,
    Signature,
    Type,
    Typer,
    Values,
    assemble,
    register,
    register_instruction,
    types,
)
from smembench.kernels.intrinsics.vector import pointer_to
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device
from smembench.kernels.program import MAPPED_ROW_BYTES
from smembench.kernels.types import Array, Index

if TYPE_CHECKING:
    from numpy.typing import NDArray

TILE_ALIGNMENT = 1024
"""Bytes to whose multiples tiles are aligned: eight rows, after which the swizzle repeats."""

ROW_BYTES, CHUNK = MAPPED_ROW_BYTES, 16
"""Bytes of a tile's row at most, and of the chunks that the swizzle moves."""

TILES = "tile_accesses"
"""The name of what records accesses to tiles, in a trace's ``cuda``."""

_SHARED, _SHARED_POINTER = 3, ir.IntType(32)

_WAIT = (
    "{ .reg .pred done; again${:uid}: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; "
    "@!done bra again${:uid}; }"
)
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$2, $3}], [$4];"


def set_barrier(barriers: Array, index: Index, arrivals: Index) -> None:
    """``mbarrier.init``: set up a barrier for ``arrivals`` per phase, before ``publish_barriers``."""
    if isinstance(barriers, np.ndarray):
        barriers[index] = _State(int(arrivals), int(arrivals), 0, 0).word
    else:
        _trace(barriers, index, "store")


def publish_barriers() -> None:
    """``fence.mbarrier_init``: make new barriers visible to copies; before the block's next ``cuda.syncthreads``."""


def acquire_map(source: Any) -> None:
    """Make a tensor map that the host wrote visible to copies; for the thread that starts them, before the first."""


def prefetch_map(source: Any) -> None:
    """Fetch a tensor map before its first use; after ``acquire_map`` of others, which would wait for it."""


def expect_bytes(barriers: Array, index: Index, count: Index) -> None:
    """``mbarrier.arrive.expect_tx``: arrive at a barrier, and announce ``count`` bytes to it."""
    _change(barriers, index, 1, count)


def arrive(barriers: Array, index: Index) -> None:
    """``mbarrier.arrive``: arrive at a barrier."""
    _change(barriers, index, 1, 0)


def wait_for_phase(barriers: Array, index: Index, phase: Index) -> None:
    """``mbarrier.try_wait.parity``: wait until the phase of this parity has ended, as the one before the first has."""
    if not isinstance(barriers, np.ndarray):
        _trace(barriers, index, "atomic")
        return
    cuda.nanosleep(0)  # other threads run first, so that they write again what was released too early
    while _State.of(barriers[index]).phase == phase:
        cuda.nanosleep(0)


def start_copy(
    tile: Array, place: Index, source: Any, column: Index, row: Index, barriers: Array, index: Index
) -> None:
    """``cp.async.bulk.tensor``: start to copy the tile at (row, column) of a tensor map's matrix to shared memory.

    Args:
        tile: shared memory, aligned to ``TILE_ALIGNMENT``; so is ``place``.
        source: the tensor map that a launch passes.
        barriers, index: the barrier at which the tile's bytes arrive.
    """
    if isinstance(tile, np.ndarray):
        box = swizzled(source.box(int(row), int(column)))
        tile[place : place + box.size] = box
        _change(barriers, index, 0, -box.size * box.itemsize)
    elif hasattr(cuda, TILES):
        getattr(cuda, TILES).copied(tile, source, column, row)


def swizzled(box: NDArray[Any]) -> NDArray[Any]:
    """The elements of a tile, rows by columns, in the order in which they lie in shared memory."""
    found = np.empty(box.size, box.dtype)
    row, column = np.indices(box.shape)
    found[places_in_tile(box.itemsize, row, column, box.shape[1] * box.itemsize)] = box
    return found


def row_bytes_of(columns: int, itemsize: int) -> int:
    """Bytes of the rows in which columns are copied: 128, or 64 where the columns' bytes are not a multiple of 128."""
    return ROW_BYTES if columns * itemsize % ROW_BYTES == 0 else ROW_BYTES // 2


def places_in_tile(itemsize: int, row: Any, column: Any, row_bytes: int = ROW_BYTES) -> Any:
    """Where elements of a swizzled tile lie, in elements from its beginning."""
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


def _trace(barriers: Any, index: Index, kind: str) -> None:
    """Tell a trace, whose arrays are its own, that a barrier is set up or used."""
    barriers.synchronize(index, kind)


def _change(barriers: Array, index: Index, arrivals: int, count: Any) -> None:
    """Count arrivals, and bytes that are announced (positive) or have come (negative)."""
    if not isinstance(barriers, np.ndarray):
        _trace(barriers, index, "atomic")
        return
    state = _State.of(barriers[index])
    missing, missing_bytes = state.missing - arrivals, state.missing_bytes + int(count)
    ended = missing == missing_bytes == 0
    barriers[index] = _State(
        state.arrivals, state.arrivals if ended else missing, missing_bytes, state.phase ^ ended
    ).word


def shared_address(
    context: Context, builder: ir.IRBuilder, kind: Type, index_kind: Type, array: ir.Value, index: ir.Value
) -> ir.Value:
    """The address of an element of a shared array in shared memory's own space, 32 bits."""
    pointer = pointer_to(context, builder, kind, index_kind, array, index)
    inside = builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(_SHARED))
    return builder.ptrtoint(inside, _SHARED_POINTER)


def _type_barrier(_context: Context) -> Typer:
    return lambda barriers, index: types.void


def _type_map(_context: Context) -> Typer:
    return lambda source: types.void


def _type_count(_context: Context) -> Typer:
    return lambda barriers, index, count: types.void


def type_copy(_context: Context) -> Typer:
    """The typing of ``start_copy``."""
    return lambda tile, place, source, column, row, barriers, index: types.void


def lower_on_barrier(assembly: str, constraints: str) -> Any:
    """Lowers a call on a barrier: its address, then the other arguments as 32-bit integers."""

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        at = shared_address(context, builder, *signature.args[:2], *args[:2])
        rest = [narrow(builder, arg) for arg in args[2:]]
        assemble(builder, assembly, constraints, at, *rest)
        return context.get_dummy_value()

    return lower


def narrow(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """An integer, truncated to 32 bits."""
    return value if value.type == _SHARED_POINTER else builder.trunc(value, _SHARED_POINTER)


def lower_copy(assembly: str) -> Any:
    """Lowers the start of a copy of a tile: its place, the map, where in the matrix, and the barrier."""

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        tile, place, source, column, row, barriers, index = args
        kinds = signature.args
        to = shared_address(context, builder, kinds[0], kinds[1], tile, place)
        at = shared_address(context, builder, kinds[5], kinds[6], barriers, index)
        assemble(builder, assembly, "r,l,r,r,r,", to, source, narrow(builder, column), narrow(builder, row), at)
        return context.get_dummy_value()

    return lower


def _lower_on_map(assembly: str) -> Any:
    """Lowers a call on a tensor map."""

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        assemble(builder, assembly, "l,", args[0])
        return context.get_dummy_value()

    return lower


BARRIER = (types.Array, types.Integer)
COPY = (*BARRIER, *[types.Integer] * 3, *BARRIER)
"""Types of a barrier, and of the arguments of a copy."""
_COUNT = (*BARRIER, types.Integer)
_INIT = "mbarrier.init.shared::cta.b64 [$0], $1;"
_ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;"
_EXPECT = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;"

register(set_barrier, _type_count, lower_on_barrier(_INIT, "r,r,"), *_COUNT)
register_instruction(publish_barriers, "fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;")
register(acquire_map, _type_map, _lower_on_map(_ACQUIRE), types.Integer)
register(prefetch_map, _type_map, _lower_on_map("prefetch.tensormap [$0];"), types.Integer)
register(expect_bytes, _type_count, lower_on_barrier(_EXPECT, "r,r,"), *_COUNT)
register(arrive, _type_barrier, lower_on_barrier("mbarrier.arrive.shared::cta.b64 _, [$0];", "r,"), *BARRIER)
register(wait_for_phase, _type_count, lower_on_barrier(_WAIT, "r,r,"), *_COUNT)
register(start_copy, type_copy, lower_copy(LOAD), *COPY)
