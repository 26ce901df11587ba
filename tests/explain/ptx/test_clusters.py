"""Thread block clusters: kernels of CUDA C whose blocks access each other's shared memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smembench
from ptx_runs import run_source
from smembench.explain.costs import Costs
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import parse
from smembench.launches.arguments import parsed
from smembench.launches.array_argument import ArrayArgument
from smembench.model.errors import UsageError
from smembench.toolchains.nvrtc import compile_source

pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = r"""
#define SHARED(x) ((unsigned)__cvta_generic_to_shared(x))
#define SYNC() do { __cluster_barrier_arrive(); __cluster_barrier_wait(); } while (0)
#define RANK __clusterRelativeBlockRank()
#define BLOCKS __clusterSizeInBlocks()
typedef unsigned long long u64;
__device__ unsigned mapped(const void *here, unsigned rank) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(SHARED(here)), "r"(rank));
    return there;
}
__device__ void wait(u64 *barrier, int parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }"
                 :: "r"(SHARED(barrier)), "r"(parity) : "memory");
}
__device__ void setup(u64 *barrier, int arrivals) {
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(SHARED(barrier)), "r"(arrivals));
}
__device__ void announce(u64 *barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(SHARED(barrier)), "r"(bytes) : "memory");
}
extern "C" {

__global__ void numbers(int *out) {
    dim3 d = __clusterDim(), i = __clusterRelativeBlockIdx(), n = __clusterGridDimInClusters(), c = __clusterIdx();
    int block = blockIdx.x + gridDim.x * blockIdx.y;
    int *o = out + 12 * (block * 32 + threadIdx.x);
    o[0] = RANK; o[1] = BLOCKS; o[2] = d.x; o[3] = d.y; o[4] = i.x; o[5] = i.y; o[6] = n.x; o[7] = n.y;
    o[8] = c.x; o[9] = c.y; o[10] = threadIdx.x; o[11] = __clusterDimIsSpecified();
}

__global__ void kinds_of_addresses(int *out) {
    __shared__ int mine[32];
    void *own = __cluster_map_shared_rank(mine, RANK), *other = __cluster_map_shared_rank(mine, RANK ^ 1);
    const void *places[4] = {mine, own, other, out};
    int *o = out + 12 * (blockIdx.x * 32 + threadIdx.x);
    for (int i = 0; i < 4; i++) {
        o[3 * i] = __isShared(places[i]);
        o[3 * i + 1] = __isClusterShared(places[i]);
        o[3 * i + 2] = __isClusterShared(places[i]) ? __cluster_query_shared_rank(places[i]) : -1;
    }
}

__global__ void histogram(int *bins, const int *data, int n, int per_block) {  // each block has some of the bins
    extern __shared__ int mine[];
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) mine[i] = 0;
    SYNC();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int bin = data[i] % (per_block * BLOCKS);
        atomicAdd((int *)__cluster_map_shared_rank(mine, bin / per_block) + bin % per_block, 1);
    }
    SYNC();
    for (int i = threadIdx.x; i < per_block; i += blockDim.x) atomicAdd(&bins[RANK * per_block + i], mine[i]);
}

__global__ void ring(int *out, const int *in) {
    __shared__ int mine[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    mine[threadIdx.x] = in[i];
    SYNC();
    out[i] = ((int *)__cluster_map_shared_rank(mine, (RANK + 1) % BLOCKS))[threadIdx.x];
    SYNC();
}

__global__ void ring_of_pushes(int *out, const int *in) {
    __shared__ int mine[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    SYNC();
    ((int *)__cluster_map_shared_rank(mine, (RANK + 1) % BLOCKS))[threadIdx.x] = in[i];
    SYNC();
    out[i] = mine[63 - threadIdx.x];
}

__global__ void without_barrier(int *out, const int *in) {
    __shared__ int mine[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    SYNC();
    mine[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = ((int *)__cluster_map_shared_rank(mine, (RANK + 1) % BLOCKS))[threadIdx.x];
    SYNC();
}

__global__ void ends_early(int *out, const int *in) {
    __shared__ int mine[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    mine[threadIdx.x] = in[i];
    SYNC();
    out[i] = ((int *)__cluster_map_shared_rank(mine, (RANK + 1) % BLOCKS))[threadIdx.x];
}

__global__ void begins_early(int *out, const int *in) {
    __shared__ int mine[64];
    int i = blockIdx.x * 64 + threadIdx.x;
    ((int *)__cluster_map_shared_rank(mine, (RANK + 1) % BLOCKS))[threadIdx.x] = in[i];
    SYNC();
    out[i] = mine[63 - threadIdx.x];
}

__global__ void unwritten(int *out) {
    __shared__ int mine[64];
    if (RANK == 0) mine[threadIdx.x] = 1;
    SYNC();
    out[threadIdx.x] = ((int *)__cluster_map_shared_rank(mine, RANK ^ 1))[threadIdx.x];
    SYNC();
}

__global__ void too_far(int *out, int rank, int element) {
    __shared__ int mine[64];
    mine[threadIdx.x] = 1;
    SYNC();
    if (RANK == 0) out[threadIdx.x] = ((int *)__cluster_map_shared_rank(mine, rank))[threadIdx.x + element];
    SYNC();
}

__global__ void one_is_missing(int *out) {
    __shared__ int mine[64];
    mine[threadIdx.x] = 1;
    if (threadIdx.x < 32) SYNC();
    else __syncthreads();
    out[threadIdx.x] = mine[threadIdx.x];
}

__global__ void of_blocks(int *out) {  // of one block alone, which the other does not wait for
    __shared__ int mine[64];
    mine[threadIdx.x] = RANK;
    if (RANK == 0) __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = RANK == 0 ? mine[63 - threadIdx.x] : mine[threadIdx.x];
}

__global__ void stored(int *out, const int *in) {  // st.async, whose bytes the barrier of the receiver counts
    __shared__ int mine[64];
    __shared__ u64 full;
    int i = blockIdx.x * 64 + threadIdx.x;
    setup(&full, 1);
    SYNC();
    if (threadIdx.x == 0) announce(&full, 256);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];"
        :: "r"(mapped(&mine[threadIdx.x], (RANK + 1) % BLOCKS)), "r"(in[i]), "r"(mapped(&full, (RANK + 1) % BLOCKS))
        : "memory");
    wait(&full, 0);
    out[i] = mine[63 - threadIdx.x];
}

__global__ void added(int *out, const int *in) {  // red.async
    __shared__ int mine[64];
    __shared__ u64 full;
    int i = blockIdx.x * 64 + threadIdx.x;
    setup(&full, 1);
    mine[threadIdx.x] = 1000;
    SYNC();
    if (threadIdx.x == 0) announce(&full, 256 * BLOCKS);
    for (int rank = 0; rank < BLOCKS; rank++)
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s32 [%0], %1, [%2];"
            :: "r"(mapped(&mine[threadIdx.x], rank)), "r"(in[i]), "r"(mapped(&full, rank)) : "memory");
    wait(&full, 0);
    out[i] = mine[threadIdx.x];
}

__global__ void handed_over(int *out, const int *in) {  // to a barrier of the other block
    __shared__ int mine[64];
    __shared__ u64 full;
    int i = blockIdx.x * 64 + threadIdx.x;
    setup(&full, 64);
    SYNC();
    ((int *)__cluster_map_shared_rank(mine, RANK ^ 1))[threadIdx.x] = in[i];
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
        :: "r"(mapped(&full, RANK ^ 1)) : "memory");
    wait(&full, 0);
    out[i] = mine[63 - threadIdx.x];
}

__global__ void rounds(int *out, const int *in, int n) {
    __shared__ int mine[2][64];
    int i = blockIdx.x * 64 + threadIdx.x;
    mine[0][threadIdx.x] = in[i];
    SYNC();
    for (int r = 0; r < n; r++) {
        int *to = (int *)__cluster_map_shared_rank(mine[(r + 1) % 2], (RANK + 1) % BLOCKS);
        to[threadIdx.x] = mine[r % 2][threadIdx.x];
        SYNC();
    }
    out[i] = mine[n % 2][threadIdx.x];
}

__global__ void pipeline(int *out, const int *in, int steps, int waits) {  // block 0 pushes, block 1 reads two stages
    __shared__ int stages[2][64];
    __shared__ u64 full[2], empty[2];
    for (int i = 0; i < 2; i++) { setup(&full[i], 64); setup(&empty[i], 64); }
    SYNC();
    for (int i = 0; i < steps; i++) {
        int stage = i % 2, phase = i / 2 % 2;
        if (RANK == 0) {
            if (waits) wait(&empty[stage], phase ^ 1);
            ((int *)__cluster_map_shared_rank(stages[stage], 1))[threadIdx.x] = in[i * 64 + threadIdx.x];
        } else {
            if (threadIdx.x == 0) wait(&full[stage], phase);
            __syncthreads();
            out[i * 64 + threadIdx.x] = stages[stage][63 - threadIdx.x];
        }
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
            :: "r"(mapped(RANK == 0 ? &full[stage] : &empty[stage], RANK ^ 1)) : "memory");
    }
    SYNC();
}

__global__ void waits_outside(int *out, int far) {
    __shared__ u64 full[1];
    setup(full, 1);
    wait(full + far, 1);
    out[blockIdx.x * 64 + threadIdx.x] = 1;
}

__global__ void in_bulk(int *out, const int *in) {
    __shared__ alignas(16) int mine[64], other[64];
    __shared__ u64 full;
    int i = blockIdx.x * 64 + threadIdx.x;
    setup(&full, 1);
    mine[threadIdx.x] = in[i];
    SYNC();
    if (threadIdx.x == 0) {
        announce(&full, 256);
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
            :: "r"(mapped(other, RANK ^ 1)), "r"(SHARED(mine)), "r"(mapped(&full, RANK ^ 1)) : "memory");
    }
    wait(&full, 0);
    out[i] = other[63 - threadIdx.x];
    SYNC();
}

__global__ void added_in_bulk(int *out, const int *in) {
    __shared__ alignas(16) int mine[64], sums[64];
    __shared__ u64 full;
    int i = blockIdx.x * 64 + threadIdx.x;
    setup(&full, 1);
    mine[threadIdx.x] = in[i];
    sums[threadIdx.x] = 0;
    SYNC();
    if (threadIdx.x == 0) {
        announce(&full, 256);
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32 "
                     "[%0], [%1], 256, [%2];"
            :: "r"(mapped(sums, RANK ^ 1)), "r"(SHARED(mine)), "r"(mapped(&full, RANK ^ 1)) : "memory");
    }
    wait(&full, 0);
    out[i] = sums[63 - threadIdx.x];
    SYNC();
}

__global__ void multicast(int *out, const int *in, int bytes, int mask) {  // each block copies a half for both
    __shared__ alignas(16) int both[128];
    __shared__ u64 full;
    int i = blockIdx.x * 64 + threadIdx.x;
    setup(&full, 1);
    SYNC();
    if (threadIdx.x == 0) {
        announce(&full, bytes);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], 256, [%2], %3;"
            :: "r"(SHARED(both + 64 * RANK)), "l"(in + 64 * blockIdx.x), "r"(SHARED(&full)), "h"((short)mask)
            : "memory");
    }
    wait(&full, 0);
    out[i] = both[threadIdx.x] + both[127 - threadIdx.x];
    SYNC();
}

__global__ void __cluster_dims__(2, 1, 1) pairs(int *out) { out[blockIdx.x * 32 + threadIdx.x] = RANK; }

}
"""


@cache
def ptx() -> str:
    return compile_source(SOURCE, Path("clusters.cu"), "9.0", []).ptx


def results(name: str, arguments: Sequence[object], blocks: int, cluster: int, threads: int = 64, **more: int) -> None:
    for result in run_source(ptx(), name, arguments, (blocks, 1, 1), (threads, 1, 1), cluster=(cluster, 1, 1), **more):
        assert not result.mistakes
        assert not result.unfollowed


def explained(
    name: str, arguments: Sequence[str], *, blocks: int = 4, cluster: int | None = 2, threads: int = 64, shared: int = 0
) -> Costs:
    call = Call(
        (blocks,), (threads,), [parsed(item) for item in arguments], shared, None if cluster is None else (cluster,)
    )
    return explain_ptx(parse(ptx()).kernels[name], call, title=name, filename="clusters.cu")


def kinds(costs: Costs) -> list[str]:
    return [mistake.kind for mistake in costs.trace.mistakes]


def test_every_thread_knows_its_place_in_cluster_and_grid() -> None:
    out = np.zeros((4, 6, 32, 12), np.int32)
    run_source(ptx(), "numbers", [out], (6, 4, 1), (32, 1, 1), cluster=(3, 2, 1))
    for y in range(4):
        for x in range(6):
            wanted = [y % 2 * 3 + x % 3, 6, 3, 2, x % 3, y % 2, 2, 2, x // 3, y // 2]
            assert (out[y, x, :, :10] == wanted).all()
            assert (out[y, x, :, 10] == np.arange(32)).all()
            assert (out[y, x, :, 11] == 1).all()


def test_addresses_tell_whose_memory_they_are_in() -> None:
    out = np.zeros((2, 2, 32, 4, 3), np.int32)
    results("kinds_of_addresses", [out], 4, 2, 32)
    for rank in range(2):
        assert (out[:, rank] == [[1, 1, rank], [1, 1, rank], [0, 1, 1 - rank], [0, 0, -1]]).all()


@pytest.mark.parametrize(("blocks", "cluster"), [(4, 2), (8, 4), (8, 8)])
def test_a_histogram_over_distributed_shared_memory(blocks: int, cluster: int) -> None:
    per_block = 96
    data = np.random.default_rng(0).integers(0, 10**6, 3000).astype(np.int32)
    bins = np.zeros(per_block * cluster, np.int32)
    given = [bins, data, np.int32(len(data)), np.int32(per_block)]
    results("histogram", given, blocks, cluster, 128, dynamic_bytes=4 * per_block)
    assert (bins == np.bincount(data % (per_block * cluster), minlength=per_block * cluster)).all()


@pytest.mark.parametrize(
    ("name", "reverse", "cluster"),
    [("ring", False, 1), ("ring", False, 2), ("ring", False, 4), ("ring_of_pushes", True, 4), ("stored", True, 4),
     ("handed_over", True, 2)],
)  # fmt: skip
def test_exchanges_in_a_ring(name: str, reverse: bool, cluster: int) -> None:
    data = np.arange(8 * 64, dtype=np.int32).reshape(8 // cluster, cluster, 64) * 7
    out = np.zeros_like(data)
    results(name, [out, data], 8, cluster)
    wanted = np.roll(data, 1, axis=1)[:, :, ::-1] if reverse else np.roll(data, -1, axis=1)
    assert (out == wanted).all()


def test_values_go_round_and_round() -> None:
    data = np.arange(4 * 64, dtype=np.int32).reshape(4, 64)
    out = np.zeros_like(data)
    results("rounds", [out, data, np.int32(7)], 4, 4)
    assert (out == np.roll(data, 7, axis=0)).all()
    costs = explained("rounds", ["int32[256]", "int32[256]", "200"], cluster=4)
    (store,) = costs.distributed
    assert (kinds(costs), store.bytes) == ([], 200 * 256 * 4)


def test_blocks_hand_tiles_over_in_a_pipeline() -> None:
    data = np.arange(10 * 64, dtype=np.int32).reshape(10, 64)
    out = np.zeros_like(data)
    results("pipeline", [out, data, np.int32(10), np.int32(1)], 2, 2)
    assert (out == data[:, ::-1]).all()


@pytest.mark.parametrize("waits", [True, False])
def test_a_pipeline_whose_writer_does_not_wait_for_the_reader(waits: bool) -> None:
    """It is a phase ahead of the reader then, which waits without end."""
    costs = explained("pipeline", ["int32[640]", "int32[640]", "10", str(int(waits))], blocks=2)
    assert (kinds(costs) == []) == waits


def test_atomics_whose_bytes_a_barrier_counts() -> None:
    data = np.arange(4 * 64, dtype=np.int32).reshape(1, 4, 64)
    out = np.zeros_like(data)
    results("added", [out, data], 4, 4)
    assert (out == 1000 + data.sum(axis=1, keepdims=True)).all()


@pytest.mark.parametrize("name", ["in_bulk", "added_in_bulk", "multicast"])
def test_copies_between_blocks_and_to_all_of_them_end_the_waits_there(name: str) -> None:
    more = ["512", "3"] if name == "multicast" else []
    costs = explained(name, ["int32[256]", "int32[256]", *more])
    assert (kinds(costs), costs.trace.unfollowed) == ([], ())


def test_a_multicast_counts_in_all_blocks_that_it_reaches() -> None:
    (tile,) = explained("multicast", ["int32[256]", "int32[256]", "512", "3"]).tiles
    assert (tile.access.blocks, tile.count) == (2, 4)
    assert (tile.shared_bytes, tile.global_bytes, tile.arriving_bytes) == (2048, 1024, 2048)


@pytest.mark.parametrize(("size", "mask", "kind"), [(1024, 3, "barrier"), (512, 1, "barrier"), (512, 7, "outside")])
def test_a_multicast_to_fewer_or_more_blocks_than_wait_for_it(size: int, mask: int, kind: str) -> None:
    assert {*kinds(explained("multicast", ["int32[256]", "int32[256]", str(size), str(mask)]))} == {kind}


def test_accesses_to_other_blocks_are_apart_from_those_to_the_own_one() -> None:
    """Four blocks of 64 threads: each stores 2 x 32 words of its own, and loads as many of another's."""
    costs = explained("ring", ["int32[256]", "int32[256]"])
    (store,), (load,) = costs.shared, costs.distributed
    assert (store.site.kind, store.requests, store.of_all) == ("store", 8, 8)
    assert (load.site.kind, load.site.array, load.requests, load.bytes) == ("load", "mine", 8, 4 * 64 * 4)


def test_clusters_that_are_alike_are_counted_with_those_that_are_run() -> None:
    """Some of so many clusters are run, and stand for all."""
    costs = explained("ring", ["int32[1048576]", "int32[1048576]"], blocks=16384, cluster=4)
    assert len(costs.trace.blocks) < 100
    (load,), (store,) = costs.distributed, costs.shared
    assert (load.requests, load.bytes, store.requests) == (2 * 16384, 256 * 16384, 2 * 16384)


def test_bytes_that_a_copy_takes_to_another_block_are_counted_there() -> None:
    (copy,) = explained("in_bulk", ["int32[256]", "int32[256]"]).distributed
    assert (copy.site.kind, copy.site.array, copy.requests, copy.bytes) == ("store", "other", 4, 1024)


def test_an_address_mapped_to_the_own_block_is_one_of_its_own() -> None:
    """Every second of 8192 bins is in each block of a pair, so half of the 512 updates reach the other block."""
    index = np.arange(512, dtype=np.int32) * 16
    call = Call(
        (2,), (64,), [parsed("int32[8192]"), ArrayArgument(index.shape, index.dtype, index), 512, 4096], 16384, (2,)
    )
    costs = explain_ptx(parse(ptx()).kernels["histogram"], call, title="histogram", filename="clusters.cu")
    (atomic,) = costs.distributed
    assert (atomic.site.kind, atomic.bytes, costs.trace.mistakes) == ("atomic", 256 * 4, ())


@pytest.mark.parametrize(
    ("name", "kind", "pattern"),
    [
        (
            "without_barrier",
            "race",
            r"thread 0 .* of block 0 stores an element of mine, which thread 0 .* of block 1 .* no barrier of the",
        ),
        ("ends_early", "barrier", "of block [01], which may have ended: it waits for nothing that comes after"),
        ("begins_early", "barrier", "of block 1, which may not have begun: no barrier of the cluster comes before"),
        ("unwritten", "unwritten", "thread 0 .* of block 0 loads an element of mine that no thread has stored"),
        ("one_is_missing", "barrier", "64 of the cluster's 128 threads reach this barrier"),
    ],
)
def test_mistakes_between_blocks(name: str, kind: str, pattern: str) -> None:
    count = 1 if name in ("unwritten", "one_is_missing") else 2
    mistake = explained(name, ["int32[256]"] * count).trace.mistakes[0]
    assert (mistake.kind, re.search(pattern, mistake.text) is not None) == (kind, True), mistake.text


def test_a_barrier_of_one_block_waits_for_that_block_alone() -> None:
    assert kinds(explained("of_blocks", ["int32[256]"])) == []


@pytest.mark.parametrize(
    ("rank", "element", "text"),
    [
        (1, 1, "thread 63 loads 4 bytes at byte 256 of shared memory of block 1 of the cluster, which has 256 bytes"),
        (5, 0, "thread 0 loads 4 bytes at byte 0 of shared memory of block 5 of the cluster, which has 0 bytes"),
    ],
)
def test_an_access_outside_of_another_blocks_memory(rank: int, element: int, text: str) -> None:
    (mistake,) = (
        item
        for item in explained("too_far", ["int32[256]", str(rank), str(element)]).trace.mistakes
        if item.kind == "outside"
    )
    assert mistake.text == text


def test_a_kernels_own_cluster_is_taken_by_itself() -> None:
    assert "grid 4 in clusters of 2x1x1 " in explained("pairs", ["int32[256]"], cluster=None, threads=32).title


@pytest.mark.parametrize(
    ("name", "blocks", "cluster", "threads", "message"),
    [
        ("pairs", 4, 4, 32, "cluster 4: pairs is compiled for clusters of 2x1x1; leave it out"),
        ("pairs", 5, None, 32, "cluster 2x1x1: does not divide the grid's 5 blocks along x"),
        ("ring", 6, 4, 64, "cluster 4: does not divide the grid's 6 blocks along x"),
        ("ring", 17, 17, 64, "cluster 17: has 17 blocks; a GPU takes at most 16"),
        ("ring", 4, 2, 48, "cluster 2: blocks of 48 threads are not traced in clusters"),
        ("ring", 4, 0, 64, "cluster 0: give 1 to 3 dimensions of at least 1"),
    ],
)
def test_clusters_that_a_launch_cannot_have(name: str, blocks: int, cluster: int, threads: int, message: str) -> None:
    arguments = ["int32[256]"] * (1 if name == "pairs" else 2)
    with pytest.raises(UsageError, match=re.escape(message)):
        explained(name, arguments, blocks=blocks, cluster=cluster, threads=threads)


def test_a_kernel_that_is_launched_in_clusters_only_needs_one() -> None:
    kernel = parse(ptx().replace(".reqnctapercluster 2, 1, 1", "")).kernels["pairs"]
    with pytest.raises(UsageError, match="pairs: is launched in clusters; give their blocks"):
        explain_ptx(kernel, Call((4,), (32,), [parsed("int32[256]")]), title="pairs", filename="clusters.cu")


def test_a_kernel_may_allow_fewer_blocks() -> None:
    kernel = parse(ptx().replace(".reqnctapercluster 2, 1, 1", ".maxclusterrank 4")).kernels["pairs"]
    with pytest.raises(UsageError, match="cluster 8: has 8 blocks; the kernel is compiled for at most 4"):
        explain_ptx(kernel, Call((8,), (32,), [parsed("int32[256]")], 0, (8,)), title="pairs", filename="clusters.cu")


def test_a_grid_that_counts_clusters_is_refused() -> None:
    kernel = parse(ptx().replace(".explicitcluster", ".blocksareclusters")).kernels["pairs"]
    with pytest.raises(UsageError, match="pairs: its grid counts clusters"):
        explain_ptx(kernel, Call((4,), (32,), [parsed("int32[256]")]), title="pairs", filename="clusters.cu")


def test_compute_capabilities_without_clusters_are_refused() -> None:
    call = Call((4,), (64,), [parsed("int32[256]")] * 2, cluster=(2,))
    with pytest.raises(UsageError, match=r"capability 8\.0 has no clusters"):
        explain_ptx(parse(ptx()).kernels["ring"], call, title="ring", filename="clusters.cu", code=("8.0", None))


def test_python_takes_a_cluster_too(tmp_path: Path) -> None:
    path = tmp_path / "clusters.ptx"
    path.write_text(ptx())
    given: dict[str, Any] = {"grid": 4, "block": 64, "args": ["int32[256]", "int32[256]"], "capability": "9.0"}
    assert "clusters of 2 " in smembench.explain_function(f"{path}:ring", cluster=2, **given).title
    assert smembench.conflicts(f"{path}:ring", cluster=(2, 1, 1), **given) == 1
    with pytest.raises(UsageError, match="cluster 2: goes with CUDA C\\+\\+ and PTX"):
        smembench.explain_function(print, cluster=2, **given)


@pytest.mark.parametrize("cluster", [None, 2])
def test_a_wait_at_a_barrier_outside_of_shared_memory_is_no_crash(cluster: int | None) -> None:
    costs = explained("waits_outside", ["int32[256]", "100000"], cluster=cluster)
    assert sum(item.requests for item in costs.memory) == 8
