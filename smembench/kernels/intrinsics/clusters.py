"""Thread block clusters: blocks that run at the same time near each other, and reach each other's shared memory.

Blocks of a cluster have ranks from 0 on. A tile that all of them need is copied once, to the same place of each one's
shared memory, and its bytes arrive at the same barrier of each (PTX ISA, "cp.async.bulk.tensor", multicast). Needs
compute capability 9.0.

In the simulator, which runs one block after another, a cluster is a single block.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.intrinsics.bulk_copy import COPY, COPY_OPERANDS, arrive, start_copy
from smembench.kernels.intrinsics.declaration import INTEGER, SHARED, Ptx, Type, types
from smembench.kernels.intrinsics.vector import load_vector, vector_of
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.types import Array, Index, Vector

_MASKED = COPY.replace("::bytes", "::bytes.multicast::cluster").replace("[$4]", "[$4], mask")
_TO_ALL = (
    "{ .reg .b32 blocks, all; .reg .b16 mask; mov.u32 blocks, %cluster_nctarank; shl.b32 all, 1, blocks; "
    f"sub.u32 all, all, 1; cvt.u16.u32 mask, all; {_MASKED} }}"
)
_ARRIVE = "{ .reg .b32 there; mapa.shared::cluster.u32 there, $0, $1; mbarrier.arrive.shared::cluster.b64 _, [there]; }"
_LOAD = (
    "{ .reg .b32 there; mapa.shared::cluster.u32 there, $4, $5; ld.shared::cluster.v4.b32 {$0, $1, $2, $3}, [there]; }"
)


def _of_float32(tile: Type, index: Type, rank: Type) -> bool:
    return bool(tile.dtype == types.float32)


@Ptx("barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;")
def meet_cluster() -> None:
    """``barrier.cluster``: wait for all threads of the cluster; barriers that they published are then set up for all.

    It orders nothing else: arrivals that release earlier writes are fences of the whole GPU, one per thread.
    """
    cuda.syncthreads()


@Ptx(_TO_ALL, *COPY_OPERANDS)
def start_copy_to_all(
    tile: Array, place: Index, source: Any, column: Index, row: Index, barriers: Array, index: Index
) -> None:
    """Multicast: ``bulk_copy.start_copy`` to the same place in all blocks of the cluster, each with its own barrier."""
    start_copy(tile, place, source, column, row, barriers, index)


@Ptx(_ARRIVE, SHARED, INTEGER)
def arrive_at(barriers: Array, index: Index, rank: Index) -> None:
    """``mapa``, ``mbarrier.arrive``: arrive at the barrier of the cluster's block of this rank."""
    arrive(barriers, index)


@Ptx("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;")
def publish_to_cluster() -> None:
    """``barrier.cluster``: wait for all threads of the cluster, and see what they have written before.

    ``meet_cluster`` with an order of memory.
    """
    cuda.syncthreads()


@Ptx(_LOAD, SHARED, INTEGER, fits=_of_float32, result=lambda tile, index, rank: vector_of(tile))
def load_vector_of_block(tile: Array, index: Index, rank: Index) -> Vector:
    """``mapa``, ``ld.shared::cluster``: a vector in shared memory of the cluster's block of this rank.

    Raises:
        ValueError: in the simulator, for an index that is not a multiple of 4.
    """
    return load_vector(tile, index)
