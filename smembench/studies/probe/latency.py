"""Latency of the memories: cycles of a load whose address is what the load before it returned.

One thread follows a chain of addresses. A launch follows three stretches by the same code: the first warms up, the
third is as much longer than the second as there are loads to time, so that the difference of the two has no overhead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.kernels.program import CudaCKernel
from smembench.studies.probe.figure import Figure, verify

if TYPE_CHECKING:
    from smembench.model.problem import Array
    from smembench.studies.probe.bench import Bench

CAPABILITY = (7, 0)

SOURCE = r"""
typedef unsigned long long u64;

// Follow a chain in three stretches of so many loads, multiples of 32; LOAD replaces `at` by what it points to.
#define FOLLOW(LOAD)                                                                                     \
    const unsigned stretches[3] = {warm, loads, 2 * loads};                                              \
    for (int stretch = 0; stretch < 3; stretch++) {                                                      \
        const long long begin = clock64();                                                               \
        _Pragma("unroll 1") for (unsigned done = 0; done < stretches[stretch]; done += 32) {             \
            _Pragma("unroll") for (int step = 0; step < 32; step++) { LOAD; }                            \
        }                                                                                                \
        out[stretch] = clock64() - begin;                                                                \
    }

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

_WARM, _SHORT = 0, 1024
"""Loads of the stretches that a chain in a cache warms up with, and is timed over."""
_NODES = 1024
_SEED = 1
_ADDRESSES = 256
"""Places of the L2 whose latency is measured, each by itself."""
_APART = 37 * 128 // 8
"""Words from one place to the next: an odd number of lines, so that they fall into all slices."""
_FAR_NODES = 3 * 1024
_FAR_WORDS = 2**22
"""Words among which the nodes in DRAM lie, 32 MiB: few pages, so that the TLB misses little."""
_SEPARATE = 3.0
"""Standard deviations within the two groups that lie between their means, at least."""

_CHAIN = "dependent loads of one thread, difference of two chains' cycles per load"


def kernel(entry: str, shared: int = 0, grid: int = 1, block: int = 1) -> CudaCKernel:
    """An entry of the source, by default for one thread."""
    return CudaCKernel(source=SOURCE, entry=entry, grid=(grid, 1), block=(block, 1), dynamic_bytes=shared)


def figures(bench: Bench) -> Iterator[Figure]:
    """Shared memory, the L1, near and far partition of the L2, and global memory."""
    yield Figure.of(
        "shared memory",
        "cycles",
        bench.trials(lambda: shared_latency(bench)),
        _CHAIN,
        "29.9 (mt4g, H100)",
    )
    nodes = np.random.default_rng(_SEED).permutation(_NODES).astype(np.uint32)
    memory = linked(bench, nodes)
    yield Figure.of(
        "L1 cache",
        "cycles",
        bench.trials(lambda: followed(bench, "follow_l1", memory, nodes, _NODES)),
        _CHAIN,
        "38 to 41 (mt4g, H100; Luo et al. 2024, H800)",
    )
    yield from _l2(bench)
    yield Figure.of(
        "global memory",
        "cycles",
        bench.trials(lambda: dram_latency(bench)),
        f"{_CHAIN}, over 32 MiB after the L2 was filled with other data",
        "479 to 834, methods differ (mt4g, H100; Luo et al. 2024, H800)",
    )


def shared_latency(bench: Bench) -> float:
    """Cycles of a dependent load from shared memory."""
    order = np.random.default_rng(_SEED).permutation(_NODES).astype(np.uint32)
    found = bench.launch(kernel("follow_shared", shared=4 * _NODES), order, _NODES, _NODES, _SHORT, out=(np.int64, 4))
    return per_load(found, order, _NODES)


def linked(bench: Bench, order: Array, memory: Any = None) -> Any:
    """A chain in global memory through the words in this order, of addresses; by default in an array just as long."""
    memory = bench.empty(order.size, np.uint64) if memory is None else memory
    blocks = -(-order.size // 256)
    (nodes,) = bench.launch(kernel("link", grid=blocks, block=256), memory, order, order.size, out=(np.uint64, 1))
    verify("the number of linked nodes", nodes, order.size)
    return memory


def followed(bench: Bench, entry: str, memory: Any, order: Array, warm: int, short: int = _SHORT) -> float:
    """Cycles of a dependent load of a chain in global memory."""
    found = bench.launch(kernel(entry), memory, int(order[0]), warm, short, out=(np.int64, 4))
    return per_load(found, order, warm, short)


def per_load(found: Array, order: Array, warm: int, short: int = _SHORT) -> float:
    """Cycles per load of what a chain returned: those of its stretches, and the node it ended at."""
    _, first, second, end = map(int, found)
    verify("the last node of the chain", end, int(order[(warm + 3 * short) % order.size]))
    return (second - first) / short


def dram_latency(bench: Bench) -> float:
    """Cycles of a dependent load that misses the L2."""
    words = _FAR_WORDS + 4 * bench.attribute("L2_CACHE_SIZE") // 8
    memory = bench.empty(words, np.uint64)
    rng = np.random.default_rng(_SEED)
    order = rng.permutation(_FAR_WORDS // 512)[:_FAR_NODES].astype(np.uint32) * np.uint32(512)
    linked(bench, order, memory)
    other = memory[_FAR_WORDS:]
    bench.launch(kernel("flush", grid=bench.sms, block=1024), other, other.size, out=(np.uint64, bench.sms * 1024))
    return followed(bench, "follow_l2", memory, order, 0, _FAR_NODES // 3)


def l2_latencies(bench: Bench) -> list[float]:
    """Cycles of a load from each of many addresses that the L2 holds: each points to itself."""
    memory = bench.empty(_ADDRESSES * _APART, np.uint64)
    found = []
    for address in range(_ADDRESSES):
        order = np.array([address * _APART], np.uint32)
        linked(bench, order, memory)
        found.append(followed(bench, "follow_l2", memory, order, 64, 256))
    return found


def _l2(bench: Bench) -> Iterator[Figure]:
    published = "219 to 263 (mt4g, H100; Luo et al. 2024, H800)"
    method = f"as above past the L1, median over {_ADDRESSES} addresses"
    trials = [partitions(l2_latencies(bench)) for _ in range(5)]
    if all(len(groups) == 2 for groups in trials):
        for place, name in enumerate(("near", "far")):
            samples = [median(groups[place]) for groups in trials]
            yield Figure.of(f"L2 cache, {name} partition", "cycles", samples, method, published)
    else:
        samples = [median(value for group in groups for value in group) for groups in trials]
        yield Figure.of("L2 cache", "cycles", samples, method, published)


def partitions(latencies: Sequence[float]) -> list[list[float]]:
    """Latencies in two groups, the near ones first, or in one if they do not fall in two.

    The split is the one with the least variance within the groups (Otsu 1979).
    """
    ordered = sorted(latencies)
    count, total, squares = len(ordered), sum(ordered), sum(value * value for value in ordered)

    def within(place: int, below: float) -> float:
        """Sum of squares within the groups of the first ``place`` values, whose sum is ``below``, and the others."""
        return squares - below * below / place - (total - below) ** 2 / (count - place)

    sums = list(accumulate(ordered[:-1]))
    place = min(range(1, count), key=lambda place: within(place, sums[place - 1]))
    near, far = ordered[:place], ordered[place:]
    spread = (max(within(place, sums[place - 1]), 0.0) / count) ** 0.5
    apart = fmean(far) - fmean(near) > _SEPARATE * spread and min(len(near), len(far)) >= count / 8
    return [near, far] if apart else [ordered]
