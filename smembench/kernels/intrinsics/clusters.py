"""Thread block clusters: blocks that run at the same time near each other, and reach each other's shared memory.

Blocks of a cluster have ranks from 0 on. A tile that all of them need is copied once, to the same place of each one's
shared memory, and its bytes arrive at the same barrier of each (PTX ISA, "cp.async.bulk.tensor", multicast). Needs
compute capability 9.0.

In the simulator, which runs one block after another, a cluster is a single block.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.bulk_copy import COPY, COPY_OPERANDS, arrive, complete_bytes, start_copy
from smembench.kernels.intrinsics.declaration import INTEGER, SHARED, Ptx, loaded
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.types import Array, Index, Map

_MASKED = COPY.replace("::bytes", "::bytes.multicast::cluster").replace("[$4]", "[$4], mask")
COPY_TO_ALL = (
    "{ .reg .b32 blocks, all; .reg .b16 mask; mov.u32 blocks, %cluster_nctarank; shl.b32 all, 1, blocks; "
    f"sub.u32 all, all, 1; cvt.u16.u32 mask, all; {_MASKED} }}"
)
_ARRIVE = "{ .reg .b32 there; mapa.shared::cluster.u32 there, $0, $1; mbarrier.arrive.shared::cluster.b64 _, [there]; }"
_SEND = (
    "{ .reg .b32 there, barrier; mapa.shared::cluster.u32 there, $4, $6; mapa.shared::cluster.u32 barrier, $5, $6; "
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [there], {$0, $1, $2, $3}, [barrier]; }"
)


@Ptx("barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire;")
def meet_cluster() -> None:
    """``barrier.cluster``: wait for all threads of the cluster; barriers that they published are then set up for all.

    It orders nothing else: arrivals that release earlier writes are fences of the whole GPU, one per thread.
    """
    cuda.syncthreads()


@Ptx(COPY_TO_ALL, *COPY_OPERANDS)
def start_copy_to_all(
    tile: Array, place: Index, source: Map, column: Index, row: Index, barriers: Array, index: Index
) -> None:
    """Multicast: ``bulk_copy.start_copy`` to the same place in all blocks of the cluster, each with its own barrier."""
    start_copy(tile, place, source, column, row, barriers, index)


@Ptx(_ARRIVE, SHARED, INTEGER)
def arrive_at(barriers: Array, index: Index, rank: Index) -> None:
    """``mapa``, ``mbarrier.arrive``: arrive at the barrier of the cluster's block of this rank."""
    arrive(barriers, index)


@Ptx("barrier.cluster.arrive.relaxed;")
def arrive_at_cluster() -> None:
    """``barrier.cluster.arrive``: the first half of ``meet_cluster``, which does not wait."""


@Ptx("barrier.cluster.wait.acquire;")
def wait_for_cluster() -> None:
    """``barrier.cluster.wait``: the second half of ``meet_cluster``."""


@Ptx(_SEND, loaded(4), SHARED, SHARED, INTEGER)
def send_vector(
    registers: Array, first: Index, tile: Array, place: Index, barriers: Array, index: Index, rank: Index
) -> None:
    """``st.async``: store four registers in shared memory of the cluster's block of this rank.

    They arrive with 16 bytes at that block's barrier; so no fence orders them, and no thread of it takes part.
    """
    tile[place : place + 4] = registers[first : first + 4]
    complete_bytes(barriers, index, 4 * tile.itemsize)
