"""Tiles in shared memory that the Tensor Memory Accelerator (TMA) writes into a matrix.

Threads store a tile's elements in shared memory, swizzled as ``bulk_copy`` has them, and each calls ``publish_tile``.
After a barrier one of them starts to write the tile, and commits what it started as a group; the tile may be
overwritten when ``finish_stores`` has waited for its group. What lies beyond the matrix is not written (PTX ISA,
"cp.async.bulk.tensor", "cp.async.bulk.wait_group"). Needs compute capability 9.0.

In the simulator a tile is written when its thread waits for that (``deferred``).
"""

from __future__ import annotations

from functools import partial

from smembench.kernels.intrinsics.declaration import INTEGER, LITERAL, MAP, SHARED, Ptx
from smembench.kernels.intrinsics.deferred import Groups
from smembench.kernels.types import Array, Index, Map

_STORES = Groups("the TMA")

STORE_OPERANDS = (MAP, INTEGER, INTEGER, SHARED)
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [$0, {$1, $2}], [$3];"
"""The instruction of ``start_store``, and its operands."""


@Ptx("fence.proxy.async.shared::cta;")
def publish_tile() -> None:
    """``fence.proxy.async``: make what this thread stored in shared memory visible to the TMA."""


@Ptx(STORE, *STORE_OPERANDS)
def start_store(target: Map, column: Index, row: Index, tile: Array, place: Index) -> None:
    """``cp.async.bulk.tensor``: start to write a tile in shared memory to (row, column) of a mapped matrix."""
    _STORES.start(lambda: (target.taken(tile[place:]),), partial(target.write, int(row), int(column)))


@Ptx("cp.async.bulk.commit_group;")
def commit_stores() -> None:
    """``cp.async.bulk.commit_group``: commit the stores started since the last commit as a group."""
    _STORES.commit()


@Ptx("cp.async.bulk.wait_group.read %literal;", LITERAL)
def finish_stores(newest: int) -> None:
    """``cp.async.bulk.wait_group.read``: wait until the tiles of all groups but the ``newest`` have been read."""
    _STORES.finish(newest)


@Ptx("cp.async.bulk.wait_group 0; fence.proxy.async.global;")
def complete_stores() -> None:
    """Wait until all tiles that this thread committed are written, for copies after a barrier of all blocks."""
    finish_stores(0)


@Ptx("fence.proxy.async.global;")
def see_stores() -> None:
    """After that barrier of all blocks: let this thread's copies read the tiles that other blocks wrote."""
