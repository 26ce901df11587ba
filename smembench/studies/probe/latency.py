"""Latency of registers and memories: cycles of a load whose address is what the load before it returned.

Every SM follows a chain with one thread. What lies beyond the L1 is not equally far from all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.kernels.device_memory import device_array
from smembench.kernels.program import CudaCKernel
from smembench.studies.probe.bench import TRIALS
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

// Chains of `nodes` words each: the word nodes[i] points to nodes[i + 1], a chain's last to its first.
extern "C" __global__ void link(u64 *out, u64 *memory, const unsigned *words, unsigned nodes, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) memory[words[i]] = (u64)&memory[words[(i + 1) % nodes ? i + 1 : i + 1 - nodes]];
    if (i == 0) out[0] = count;
}

extern "C" __global__ void follow_shared(long long *out, const unsigned *words, unsigned nodes, unsigned warm,
                                         unsigned loads)
{
    extern __shared__ unsigned memory[];
    const unsigned base = (unsigned)__cvta_generic_to_shared(memory);
    for (unsigned i = 0; i < nodes; i++) memory[words[i]] = base + 4 * words[(i + 1) % nodes];
    __syncthreads();
    unsigned at = base + 4 * words[0];
    FOLLOW(asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)))
    out[2 * blockIdx.x] = cycles;
    out[2 * blockIdx.x + 1] = (at - base) / 4;
}

// Multiplications and additions of registers, each of what the one before it gave.
extern "C" __global__ void follow_registers(long long *out, unsigned factor, unsigned summand, unsigned warm,
                                            unsigned loads)
{
    unsigned at = 0;
    FOLLOW(asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(at) : "r"(factor), "r"(summand)))
    out[2 * blockIdx.x] = cycles;
    out[2 * blockIdx.x + 1] = at;
}

// Each load by itself between two readings of the clock, the second of which waits for a store of what it returned. In
// front of the first is the store of the cycles before, as in mt4g: the load queues behind it.
extern "C" __global__ void clock_shared(long long *out, unsigned nodes)
{
    extern __shared__ u64 took[];
    unsigned *memory = (unsigned *)(took + nodes);
    const u64 sink = __cvta_generic_to_shared(memory + nodes);
    for (unsigned i = 0; i < nodes; i++) memory[i] = (i + 1) % nodes;
    unsigned node = 0;
    #pragma unroll 16
    for (unsigned i = 0; i < nodes; i++) {
        unsigned begin, end;
        const u64 at = __cvta_generic_to_shared(memory + node);
        asm volatile("mov.u32 %0, %%clock;\n\t"
                     "ld.shared.u32 %1, [%3];\n\t"
                     "st.shared.u32 [%4], %1;\n\t"
                     "mov.u32 %2, %%clock;"
                     : "=r"(begin), "=r"(node), "=r"(end) : "l"(at), "l"(sink) : "memory");
        took[i] = end - begin;
    }
    u64 cycles = 0;
    for (unsigned i = 0; i < nodes; i++) cycles += took[i];
    out[2 * blockIdx.x] = cycles;
    out[2 * blockIdx.x + 1] = node;
}

// From `chains` places per block, each block beginning with another.
#define FOLLOW_GLOBAL(NAME, LOAD)                                                                          \
    extern "C" __global__ void NAME(long long *out, u64 *memory, const unsigned *first, unsigned chains,   \
                                    unsigned warm, unsigned loads)                                         \
    {                                                                                                      \
        for (unsigned i = 0; i < chains; i++) {                                                            \
            const unsigned chain = blockIdx.x * chains + (blockIdx.x + i) % chains;                        \
            u64 at = (u64)&memory[first[chain]];                                                           \
            FOLLOW(asm volatile(LOAD : "+l"(at)))                                                          \
            out[2 * chain] = cycles;                                                                       \
            out[2 * chain + 1] = (u64 *)at - memory;                                                       \
        }                                                                                                  \
    }

FOLLOW_GLOBAL(follow_l1, "ld.global.ca.u64 %0, [%0];")
FOLLOW_GLOBAL(follow_l2, "ld.global.cg.u64 %0, [%0];")

// Reads so much that the L2 keeps nothing else.
extern "C" __global__ void flush(u64 *out, const u64 *memory, unsigned words)
{
    u64 sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) sum ^= memory[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
)

_FACTOR, _SUMMAND = 1664525, 1013904223
_NODES, _LOADS = 1024, 1024
"""Nodes of a chain that fits the L1, and the loads that it is timed over."""
_ADDRESSES, _APART = 256, 37 * 128 // 8
"""Places of the L2 whose latency is measured, each by itself, and the words from one to the next: an odd number of
lines, so that they fall into all slices."""
_FAR_LOADS, _FAR_APART = 128, 512
"""Loads from DRAM by each SM, and words from one place to the next: few enough pages that the TLB misses little."""
_SEPARATE = 5.0
"""Standard deviations within two groups that their means have to be apart: halves of evenly spread values are 3.5
apart."""

_CHAIN = (
    "one thread per SM, each load's address from the load before; two chain lengths' difference per load, median of SMs"
)
_OF_REGISTERS = "one thread per SM, each multiply-add from the one before, registers read and written; median of SMs"
REGISTERS = "registers, multiply-add"
_CLOCKED = (
    "one thread per SM; clock read before and after one load and a dependent store, with a store "
    "of the cycles before in front"
)
_OTHERS = "mt4g, H100; Luo et al. 2024, H800"


def figures(bench: Bench) -> Iterator[Figure]:
    """Registers, shared memory, the L1, near and far partition of the L2, and global memory."""
    ampere = "Abdelkhalik et al. 2022, A100"
    samples = bench.trials(partial(register_latency, bench))
    yield Figure.of(REGISTERS, "cycles", samples, _OF_REGISTERS, "4 (Jia et al. 2018, V100)")
    samples = bench.trials(partial(shared_latency, bench))
    yield Figure.of("shared memory", "cycles", samples, _CHAIN, f"23 ({ampere})")
    samples = bench.trials(partial(_clocked, bench))
    yield Figure.of("shared memory, clock to clock", "cycles", samples, _CLOCKED, "29.9 (mt4g, H100)")
    chain = shuffled(_NODES)[np.newaxis]
    memory = _linked(bench, chain, device_array(chain.size, np.uint64))
    samples = bench.trials(lambda: float(np.median(_followed(bench, "follow_l1", memory, chain, _NODES))))
    yield Figure.of("L1 cache", "cycles", samples, _CHAIN, f"38 to 41 ({_OTHERS}), 33 ({ampere})")
    yield from _l2(bench)
    samples = bench.trials(partial(global_latency, bench))
    method = f"{_CHAIN}; the L2 holds other data"
    yield Figure.of("global memory", "cycles", samples, method, f"479 to 834 ({_OTHERS}; methods differ)")


def register_latency(bench: Bench) -> float:
    """Cycles of a multiply-add whose operands are registers, one of them the result before."""
    given = (_FACTOR, _SUMMAND, _NODES, _LOADS)
    output = bench.launch(_kernel("follow_registers", bench.sms), *given, out=(np.int64, 2 * bench.sms))
    end = 0
    for _ in range(_NODES + 3 * _LOADS):
        end = (end * _FACTOR + _SUMMAND) % 2**32
    return float(np.median(per_load(output, np.full((1, 1), end), 0, _LOADS)))


def shared_latency(bench: Bench) -> float:
    """Cycles of a dependent load from shared memory."""
    chain = shuffled(_NODES)
    kernel = _kernel("follow_shared", bench.sms, shared=4 * _NODES)
    output = bench.launch(kernel, chain, _NODES, _NODES, _LOADS, out=(np.int64, 2 * bench.sms))
    return float(np.median(per_load(output, chain[np.newaxis], _NODES, _LOADS)))


def global_latency(bench: Bench) -> float:
    """Cycles of a dependent load from global memory that misses the L2; each SM has a chain of its own."""
    words = shuffled(bench.sms * 3 * _FAR_LOADS, _FAR_APART)
    chains = words.reshape(bench.sms, -1)
    memory = device_array(words.size * _FAR_APART + (bench.info.l2_bytes or 0) // 2, np.uint64)
    _linked(bench, chains, memory)
    others, threads = memory[words.size * _FAR_APART :], 1024 * bench.sms
    flush = _kernel("flush", bench.sms, block=1024)
    bench.launch(flush, others, int(others.size), out=(np.uint64, threads))
    return float(np.median(_followed(bench, "follow_l2", memory, chains, 0, _FAR_LOADS)))


def partitions(latencies: Array) -> list[Array]:
    """Latencies between SMs and addresses of the same partition of the L2, and of different ones; all, if it has one.

    SMs of one partition find the same addresses near, so their latencies rise and fall together.

    Args:
        latencies: a row per SM and a column per address.
    """
    side = np.corrcoef(latencies)[0] > 0
    if side.all():
        return [latencies.ravel()]
    farther = latencies[side].mean(axis=0) - latencies[~side].mean(axis=0)
    near = farther < 0
    groups = farther[near], farther[~near]
    if not near.any() or near.all() or not _apart(*groups):
        return [latencies.ravel()]
    same = side[:, np.newaxis] == near
    return [latencies[same], latencies[~same]]


def _apart(low: Array, high: Array) -> bool:
    """True if two groups are two, and not the halves of one."""
    within = np.concatenate([low - low.mean(), high - high.mean()]).std()
    return bool(high.mean() - low.mean() > _SEPARATE * within)


def _l2(bench: Bench) -> Iterator[Figure]:
    """A figure for each partition, or one if no two differ in every trial."""
    places = np.arange(_ADDRESSES, dtype=np.uint32)[:, np.newaxis] * np.uint32(_APART)
    memory = _linked(bench, places, device_array(places.size * _APART, np.uint64))

    def trial() -> list[Array]:
        cycles = _followed(bench, "follow_l2", memory, np.tile(places, (bench.sms, 1)), 64, 256)
        return partitions(cycles.reshape(bench.sms, -1))

    trials = [trial() for _ in range(TRIALS)]
    two = all(len(groups) == 2 for groups in trials)
    method = f"{_CHAIN} and of {_ADDRESSES} addresses" + ", grouped by partition as the SMs' latencies show" * two
    for place, name in enumerate(("L2 cache, near", "L2 cache, far") if two else ("L2 cache",)):
        samples = [np.median(groups[place] if two else np.concatenate(groups)) for groups in trials]
        yield Figure.of(name, "cycles", samples, method, f"219 to 263 ({_OTHERS})")


def _kernel(entry: str, grid: int, *, block: int = 1, shared: int = 0) -> CudaCKernel:
    return CudaCKernel(source=SOURCE, entry=entry, grid=(grid, 1), block=(block, 1), dynamic_bytes=shared)


def _clocked(bench: Bench) -> float:
    """Cycles between two readings of the clock around a load from shared memory, mean of many."""
    kernel = _kernel("clock_shared", bench.sms, shared=12 * _NODES + 4)
    output = bench.launch(kernel, _NODES, out=(np.int64, 2 * bench.sms))
    return float(np.median(per_load(output, np.zeros((1, 1)), 0, _NODES)))


def _linked(bench: Bench, chains: Array, memory: Any) -> Any:
    """Chains in global memory, a row of words each, every word pointing to the next."""
    kernel = _kernel("link", -(-chains.size // 256), block=256)
    (count,) = bench.launch(kernel, memory, chains.ravel(), chains.shape[1], chains.size, out=(np.uint64, 1))
    verify("the number of linked words", int(count), chains.size)
    return memory


def _followed(bench: Bench, entry: str, memory: Any, chains: Array, warm: int, loads: int = _LOADS) -> Array:
    """Cycles per load of each chain; the SMs share them out, and all follow the same one if there is but one."""
    first = np.resize(chains[:, 0], max(bench.sms, len(chains)))
    per_block = first.size // bench.sms
    kernel = _kernel(entry, bench.sms)
    output = bench.launch(kernel, memory, first, per_block, warm, loads, out=(np.int64, 2 * first.size))
    return per_load(output, chains, warm, loads)
