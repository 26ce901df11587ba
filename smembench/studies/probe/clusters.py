"""Distributed shared memory: the shared memory of the other blocks of a thread block cluster, by cluster size.

Blocks of a cluster run at once on SMs near each other, and load from each other's shared memory (PTX ISA, state space
``.shared::cluster``). Sizes above 8 are not portable: a device may have them (CUDA C++ Programming Guide, "Thread Block
Clusters").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from smembench.kernels.program import CudaCKernel
from smembench.model.measurement import Status
from smembench.studies.probe.figure import Figure, verify

if TYPE_CHECKING:
    from smembench.model.problem import Array
    from smembench.studies.probe.bench import Bench

CAPABILITY = (9, 0)

SOURCE = r"""
typedef unsigned long long u64;

constexpr unsigned LOADS = 1024, NODES = 512, VECTORS = 2048;

extern __shared__ __align__(16) unsigned char memory[];

// Where a variable of this block's shared memory is in the block of another rank.
__device__ u64 mapped(const void *pointer, unsigned rank)
{
    u64 address;
    asm("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(pointer), "r"(rank));
    return address;
}

__device__ unsigned rank_in_cluster()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ void wait_for_cluster()
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// The only thread of each block follows a chain in each block of its cluster, its own first. Per block and chain:
// cycles, and whether the chain ended where it should not.
template <unsigned SIZE>
__device__ void latency(long long *out)
{
    const unsigned rank = rank_in_cluster();
    u64 *nodes = (u64 *)memory;
    for (unsigned i = 0; i < NODES; ++i) nodes[i] = mapped(&nodes[(i + 17) % NODES], rank);
    out += 2 * SIZE * blockIdx.x;
    for (unsigned distance = 0; distance < SIZE; ++distance) {
        const unsigned other = (rank + distance) % SIZE;
        u64 at = mapped(nodes, other);
        wait_for_cluster();
        const long long start = clock64();
#pragma unroll 16
        for (unsigned load = 0; load < LOADS; ++load) asm volatile("ld.u64 %0, [%0];" : "+l"(at) :: "memory");
        out[2 * distance] = clock64() - start;
        out[2 * distance + 1] = at != mapped(&nodes[LOADS * 17 % NODES], other);
    }
    wait_for_cluster();
}

// Each thread reads all vectors of the next block of its cluster. Per block: cycles, and how many threads got a wrong
// sum.
template <unsigned SIZE>
__device__ void rate(long long *out)
{
    const unsigned rank = rank_in_cluster(), other = (rank + 1) % SIZE;
    uint4 *vectors = (uint4 *)memory;
    for (unsigned i = threadIdx.x; i < VECTORS; i += blockDim.x) vectors[i] = {i, rank, i * i, 1};
    const u64 from = mapped(vectors, other);
    uint4 sum = {0, 0, 0, 0};
    wait_for_cluster();
    const long long start = clock64();
#pragma unroll 8
    for (unsigned i = 0; i < VECTORS; ++i) {
        uint4 vector;
        asm volatile("ld.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(vector.x), "=r"(vector.y), "=r"(vector.z), "=r"(vector.w)
                     : "l"(from + (threadIdx.x + i) % VECTORS * sizeof(uint4)) : "memory");
        sum.x += vector.x, sum.y += vector.y, sum.z += vector.z, sum.w += vector.w;
    }
    wait_for_cluster();
    const long long cycles = clock64() - start;
    unsigned squares = 0;
    for (unsigned i = 0; i < VECTORS; ++i) squares += i * i;
    const bool right = sum.x == VECTORS * (VECTORS - 1) / 2 && sum.y == VECTORS * other && sum.z == squares
                       && sum.w == VECTORS;
    const int wrong = __syncthreads_count(!right);
    if (threadIdx.x == 0) {
        out[2 * blockIdx.x] = cycles;
        out[2 * blockIdx.x + 1] = wrong;
    }
}

#define CLUSTERS(size)                                                                                             \
    extern "C" __global__ void __cluster_dims__(size, 1, 1) latency_##size(long long *out) { latency<size>(out); } \
    extern "C" __global__ void __cluster_dims__(size, 1, 1) rate_##size(long long *out) { rate<size>(out); }

CLUSTERS(2) CLUSTERS(4) CLUSTERS(8) CLUSTERS(16)
"""

_SIZES, _PORTABLE = (2, 4, 8, 16), 8
"""Blocks per cluster, and how many of them every device of this compute capability can have."""
_LOADS, _VECTORS = 1024, 2048
"""Loads of a chain, and vectors that each thread reads, as in the source."""
_THREADS, _VECTOR = 1024, 16
"""Threads per block whose bandwidth is measured, and bytes per vector."""
_BYTES = _THREADS * _VECTORS * _VECTOR
"""Bytes that a block loads."""
_CHAIN = "one thread per block, each load's address from the load before"
_NEXT = f"{_THREADS} threads per block load {_VECTOR} bytes each from the next block of their cluster"
_LATENCY = "180, 181 to 213 (Luo et al. 2024, H800)"
_WHOLE = {2: "3.27 (Luo et al. 2024, H800)", 4: "2.65 (Luo et al. 2024, H800)"}
"""TB/s by cluster size."""


def figures(bench: Bench) -> Iterator[Figure]:
    """By cluster size: latency, bandwidth per SM, and bandwidth of the whole device."""
    for size in _SIZES:
        if not _program(bench, "latency", size).grid[0]:
            yield Figure.missing(f"clusters of {size}", Status.SKIPPED, "not on this device: no room for one")
            continue
        if size == _SIZES[0]:
            samples = bench.trials(lambda: float(latencies(bench, _SIZES[0])[:, 0].mean()))
            yield Figure.of("own block, by its address in the cluster: latency", "cycles", samples, _CHAIN)
        samples = bench.trials(partial(_latency, bench, size))
        yield Figure.of(f"clusters of {size}: latency", "cycles", samples, f"{_CHAIN}; mean of all pairs", _LATENCY)
        if size == _PORTABLE:
            for pair, of in (("nearest", np.min), ("farthest", np.max)):
                samples = bench.trials(partial(_latency, bench, size, of))
                yield Figure.of(f"clusters of {size}: latency, {pair} pair", "cycles", samples, _CHAIN, _LATENCY)
        samples = bench.trials(partial(_bandwidth, bench, size))
        yield Figure.of(f"clusters of {size}: bandwidth", "B/clk/SM", samples, _NEXT)
        samples = bench.trials(partial(_whole_bandwidth, bench, size))
        yield Figure.of(f"clusters of {size}: bandwidth of the device", "TB/s", samples, _NEXT, _WHOLE.get(size))


def latencies(bench: Bench, size: int) -> Array:
    """Cycles per load, by block and by how many ranks the block that it loads from is further on.

    Raises:
        Unverified: if a chain ended where it should not.
    """
    program = _program(bench, "latency", size)
    blocks = program.grid[0]
    out = bench.launch(program, out=(np.int64, 2 * blocks * size))
    cycles, wrong = out.reshape(blocks, size, 2).transpose(2, 0, 1)
    verify(f"the number of wrong chains in clusters of {size}", int(wrong.sum()), 0)
    return cycles / _LOADS


def _latency(bench: Bench, size: int, of: Callable[[Array], np.float64] = np.mean) -> float:
    """Between different blocks; ``of`` all pairs."""
    return float(of(latencies(bench, size)[:, 1:]))


def _bandwidth(bench: Bench, size: int) -> float:
    """Bytes per clock that an SM loads; the mean over the SMs."""
    program = _program(bench, "rate", size, _THREADS)
    out = bench.launch(program, out=(np.int64, 2 * program.grid[0]))
    return float((_BYTES / _verified(out)).mean())


def _whole_bandwidth(bench: Bench, size: int) -> float:
    program = _program(bench, "rate", size, _THREADS)
    seconds, out = bench.seconds(program, out=(np.int64, 2 * program.grid[0]))
    return _BYTES * len(_verified(out)) / seconds / 1e12


def _verified(out: Array) -> Array:
    """The blocks' cycles."""
    cycles, wrong = out.reshape(-1, 2).T
    verify("the number of threads with a wrong sum", int(wrong.sum()), 0)
    return cycles


def _program(bench: Bench, kernel: str, size: int, threads: int = 1) -> CudaCKernel:
    """A program with all clusters that the device holds at once, which may be none; each block has an SM to itself."""
    alone = bench.shared_bytes // 2 + 1024
    program = CudaCKernel(SOURCE, f"{kernel}_{size}", grid=(size, 1), block=(threads, 1), dynamic_bytes=alone)
    if size > _PORTABLE:
        bench.set_attribute(program, "NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)
    return replace(program, grid=(size * bench.resident_clusters(program), 1))
