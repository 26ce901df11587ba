"""Latency of the memories: cycles of a load whose address is what the load before it returned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.kernels.program import CudaCKernel
from smembench.studies.probe.figure import Figure, verify
from smembench.studies.probe.timing import CHAIN, per_load, shuffled

if TYPE_CHECKING:
    from smembench.model.problem import Array
    from smembench.studies.probe.bench import Bench

CAPABILITY = (7, 0)

SOURCE = (
    CHAIN
    + r"""
typedef unsigned long long u64;

// The node at order[i] points to the one at order[i + 1], the last to the first.
extern "C" __global__ void link(u64 *out, u64 *memory, const unsigned *order, unsigned nodes)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < nodes) memory[order[i]] = (u64)&memory[order[i + 1 < nodes ? i + 1 : 0]];
    if (i == 0) out[0] = nodes;
}

extern "C" __global__ void follow_shared(long long *out, const unsigned *order, unsigned nodes, unsigned warm,
                                         unsigned loads)
{
    extern __shared__ unsigned memory[];
    const unsigned base = (unsigned)__cvta_generic_to_shared(memory);
    for (unsigned i = 0; i < nodes; i++) memory[order[i]] = base + 4 * order[i + 1 < nodes ? i + 1 : 0];
    __syncthreads();
    unsigned at = base + 4 * order[0];
    FOLLOW(asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)))
    out[3] = (at - base) / 4;
}

// Each load by itself between two readings of the clock, the second of which waits for a store of what it returned.
extern "C" __global__ void clocked_shared(long long *out, unsigned loads)
{
    extern __shared__ unsigned memory[];
    const unsigned base = (unsigned)__cvta_generic_to_shared(memory), sink = base + 4 * loads;
    for (unsigned i = 0; i < loads; i++) memory[i] = base + 4 * ((i + 1) % loads);
    __syncthreads();
    unsigned at = base;
    long long cycles = 0;
    #pragma unroll 1
    for (unsigned i = 0; i < loads; i++) {
        unsigned begin, end;
        asm volatile("mov.u32 %0, %%clock;\n\t"
                     "ld.volatile.shared.u32 %1, [%1];\n\t"
                     "st.volatile.shared.u32 [%3], %1;\n\t"
                     "mov.u32 %2, %%clock;"
                     : "=r"(begin), "+r"(at), "=r"(end) : "r"(sink) : "memory");
        cycles += end - begin;
    }
    out[0] = cycles;
    out[1] = at - base;
}

extern "C" __global__ void follow_l1(long long *out, u64 *memory, unsigned first, unsigned warm, unsigned loads)
{
    u64 at = (u64)&memory[first];
    FOLLOW(asm volatile("ld.global.ca.u64 %0, [%0];" : "+l"(at)))
    out[3] = (u64 *)at - memory;
}

extern "C" __global__ void follow_l2(long long *out, u64 *memory, unsigned first, unsigned warm, unsigned loads)
{
    u64 at = (u64)&memory[first];
    FOLLOW(asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(at)))
    out[3] = (u64 *)at - memory;
}

// Reads so much that the L2 keeps nothing else.
extern "C" __global__ void flush(u64 *out, const u64 *memory, unsigned words)
{
    u64 sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) sum ^= memory[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
)

_NODES, _LOADS = 1024, 1024
"""Nodes of a chain that fits the L1, and the loads that it is timed over."""
_ADDRESSES = 256
"""Places of the L2 whose latency is measured, each by itself."""
_APART = 37 * 128 // 8
"""Words from one place to the next: an odd number of lines, so that they fall into all slices."""
_L2_TRIALS = 6
_FAR_NODES = 3 * 1024
_FAR_STEP, _FAR_WORDS = 512, 2**22
"""Words between the places for nodes in DRAM, and those that they lie among, 32 MiB: so few pages stay in the TLB."""
_SEPARATE = 5.0
"""Standard deviations within two groups of latencies that their means have to be apart: halves of evenly spread values
are 3.5 apart."""

_CHAIN = "one thread, each load's address from the load before; cycles of a chain less those of one half as long"
_CLOCKED = "one thread, mean over loads of the cycles between two clock readings, with what these and a store take"
_OTHERS = "mt4g, H100; Luo et al. 2024, H800"


def figures(bench: Bench) -> Iterator[Figure]:
    """Shared memory, the L1, near and far partition of the L2, and global memory."""
    samples = bench.trials(lambda: shared_latency(bench))
    yield Figure.of("shared memory", "cycles", samples, _CHAIN, "23 (Abdelkhalik et al. 2022, A100)")
    samples = bench.trials(lambda: clocked_latency(bench))
    yield Figure.of("shared memory, clock to clock", "cycles", samples, _CLOCKED, "29.9 (mt4g, H100)")
    order = shuffled(_NODES)
    memory = _linked(bench, order)
    samples = bench.trials(lambda: _followed(bench, "follow_l1", memory, order, _NODES))
    yield Figure.of("L1 cache", "cycles", samples, _CHAIN, f"38 to 41 ({_OTHERS})")
    yield from _l2(bench)
    samples = bench.trials(lambda: global_latency(bench))
    method = f"{_CHAIN}; over 32 MiB, after the L2 was filled with other data"
    yield Figure.of("global memory", "cycles", samples, method, f"479 to 834 ({_OTHERS}; methods differ)")


def shared_latency(bench: Bench) -> float:
    """Cycles of a dependent load from shared memory."""
    order = shuffled(_NODES)
    follow = _kernel("follow_shared", shared=4 * _NODES)
    found = bench.launch(follow, order, _NODES, _NODES, _LOADS, out=(np.int64, 4))
    return per_load(found, order, _NODES, _LOADS)


def clocked_latency(bench: Bench) -> float:
    """Cycles between two readings of the clock around a load from shared memory, mean of many."""
    kernel = _kernel("clocked_shared", shared=4 * (_NODES + 1))
    cycles, end = map(int, bench.launch(kernel, _NODES, out=(np.int64, 2)))
    verify("the last node of the chain", end, 0)
    return cycles / _NODES


def global_latency(bench: Bench) -> float:
    """Cycles of a dependent load from global memory that misses the L2."""
    memory = bench.empty(_FAR_WORDS + 4 * bench.attribute("L2_CACHE_SIZE") // 8, np.uint64)
    order = shuffled(_FAR_WORDS // _FAR_STEP, _FAR_STEP)[:_FAR_NODES]
    _linked(bench, order, memory)
    others, threads = memory[_FAR_WORDS:], 1024 * bench.sms
    bench.launch(_kernel("flush", grid=bench.sms, block=1024), others, int(others.size), out=(np.uint64, threads))
    return _followed(bench, "follow_l2", memory, order, warm=0)


def l2_latencies(bench: Bench) -> list[float]:
    """Cycles of a load from each of many addresses that the L2 holds: each points to itself."""
    memory = bench.empty(_ADDRESSES * _APART, np.uint64)
    found = []
    for place in range(_ADDRESSES):
        order = np.array([place * _APART], np.uint32)
        _linked(bench, order, memory)
        found.append(_followed(bench, "follow_l2", memory, order, warm=64))
    return found


def partitions(latencies: Sequence[float]) -> list[list[float]]:
    """Latencies in two groups, the near ones first, or in one if they do not fall in two.

    The split is the one with the least variance within the groups (Otsu 1979).
    """
    ordered = sorted(latencies)
    count, total, squares = len(ordered), sum(ordered), sum(value * value for value in ordered)

    def within(place: int, below: float) -> float:
        """Sum of squares within the groups of the first ``place`` values, whose sum is ``below``, and of the others."""
        return squares - below * below / place - (total - below) ** 2 / (count - place)

    spread, place = min((within(place, below), place) for place, below in enumerate(accumulate(ordered[:-1]), 1))
    near, far = ordered[:place], ordered[place:]
    apart = fmean(far) - fmean(near) > _SEPARATE * (max(spread, 0.0) / count) ** 0.5
    return [near, far] if apart and min(len(near), len(far)) >= count / 8 else [ordered]


def _l2(bench: Bench) -> Iterator[Figure]:
    """A figure for each partition, or one if every trial's latencies do not fall in two groups."""
    trials = [partitions(l2_latencies(bench)) for _ in range(_L2_TRIALS)]
    two = all(len(groups) == 2 for groups in trials)
    method = f"{_CHAIN}; median of {_ADDRESSES} addresses from one SM" + ", which fall in two groups" * two
    for place, name in enumerate(("L2 cache, near", "L2 cache, far") if two else ("L2 cache",)):
        samples = [median(groups[place] if two else list(chain(*groups))) for groups in trials]
        yield Figure.of(name, "cycles", samples, method, f"219 to 263 ({_OTHERS})")


def _kernel(entry: str, *, shared: int = 0, grid: int = 1, block: int = 1) -> CudaCKernel:
    return CudaCKernel(source=SOURCE, entry=entry, grid=(grid, 1), block=(block, 1), dynamic_bytes=shared)


def _linked(bench: Bench, order: Array, memory: Any = None) -> Any:
    """A chain in global memory through the words of this order; by default in an array just as long."""
    memory = bench.empty(order.size, np.uint64) if memory is None else memory
    kernel = _kernel("link", grid=-(-order.size // 256), block=256)
    (nodes,) = bench.launch(kernel, memory, order, order.size, out=(np.uint64, 1))
    verify("the number of linked nodes", int(nodes), order.size)
    return memory


def _followed(bench: Bench, entry: str, memory: Any, order: Array, warm: int) -> float:
    """Cycles of a dependent load of a chain in global memory."""
    found = bench.launch(_kernel(entry), memory, int(order[0]), warm, _LOADS, out=(np.int64, 4))
    return per_load(found, order, warm, _LOADS)
