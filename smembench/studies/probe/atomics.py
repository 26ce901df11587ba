"""Atomic additions by contention: all lanes to one word, to words of one bank, each lane to a word of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.kernels.device_memory import to_device
from smembench.kernels.program import CudaCKernel
from smembench.studies.probe.figure import Figure, verify
from smembench.studies.probe.timing import SPAN

if TYPE_CHECKING:
    from smembench.model.problem import Array
    from smembench.studies.probe.bench import Bench

CAPABILITY = (7, 0)

SOURCE = (
    SPAN
    + r"""
const unsigned STEPS = 4, WORDS = 1024;

template <typename Word> __device__ void add_shared(Word *to, Word value)
{
    const unsigned at = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (sizeof(Word) == 4) asm volatile("red.shared.add.u32 [%0], %1;" :: "r"(at), "r"(value) : "memory");
    else asm volatile("red.shared.add.u64 [%0], %1;" :: "r"(at), "l"(value) : "memory");
}

template <typename Word> __device__ void add_global(Word *to, Word value)
{
    if constexpr (sizeof(Word) == 4) asm volatile("red.global.add.u32 [%0], %1;" :: "l"(to), "r"(value) : "memory");
    else asm volatile("red.global.add.u64 [%0], %1;" :: "l"(to), "l"(value) : "memory");
}

// Thread i adds i + 1 to the word words[i], of its block's array in shared memory or of one in global memory; what the
// block's words are then follows the cycles.
template <typename Word> __device__ void in_shared(long long *out, const unsigned *words, unsigned rounds)
{
    __shared__ Word memory[WORDS];
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) memory[i] = 0;
    Word *to = memory + words[threadIdx.x];
    BEGIN
    #pragma unroll 1
    for (unsigned round = 0; round < rounds; round++)
        #pragma unroll
        for (unsigned step = 0; step < STEPS; step++) add_shared<Word>(to, threadIdx.x + 1);
    END
    for (unsigned i = threadIdx.x; i < WORDS; i += blockDim.x) out[gridDim.x + blockIdx.x * WORDS + i] = memory[i];
}

template <typename Word>
__device__ void in_global(long long *out, Word *memory, const unsigned *words, unsigned rounds)
{
    const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    Word *to = memory + words[thread];
    BEGIN
    #pragma unroll 1
    for (unsigned round = 0; round < rounds; round++)
        #pragma unroll
        for (unsigned step = 0; step < STEPS; step++) add_global<Word>(to, thread + 1);
    __threadfence();
    END
}

typedef unsigned long long u64;
extern "C" __global__ void shared32(long long *out, const unsigned *words, unsigned rounds)
{ in_shared<unsigned>(out, words, rounds); }
extern "C" __global__ void shared64(long long *out, const unsigned *words, unsigned rounds)
{ in_shared<u64>(out, words, rounds); }
extern "C" __global__ void global32(long long *out, unsigned *memory, const unsigned *words, unsigned rounds)
{ in_global<unsigned>(out, memory, words, rounds); }
extern "C" __global__ void global64(long long *out, u64 *memory, const unsigned *words, unsigned rounds)
{ in_global<u64>(out, memory, words, rounds); }
"""
)

_THREADS, _STEPS = 1024, 4
_ROUNDS = {"own words": 256, "one bank": 64, "one word": 16}
"""Rounds by contention, fewer where they take longer."""
_LONGER = 4
"""Times as many rounds in global memory, whose times vary more."""


def figures(bench: Bench) -> Iterator[Figure]:
    """Cycles that a warp's request of 32 additions takes, in shared memory and beside it in global memory."""
    for bits in (32, 64):
        for contention in _ROUNDS:
            samples = bench.trials(partial(shared_cycles, bench, bits, contention))
            method = f"{_THREADS} threads per SM add to their block's array, SM cycles per request of a warp"
            yield Figure.of(f"shared, {bits} bits, {contention}", "cycles", samples, method)
    for bits in (32, 64):
        for contention in ("own words", "one word"):
            samples = bench.trials(partial(global_cycles, bench, bits, contention))
            method = f"{_THREADS} threads on each SM add to one array of all SMs, SM cycles per request of a warp"
            yield Figure.of(f"global, {bits} bits, {contention}", "cycles", samples, method)


def targets(contention: str, threads: int) -> Array:
    """The word that each thread adds to."""
    thread = np.arange(threads, dtype=np.uint32)
    words = {"own words": thread, "one bank": thread % 32 * 32 + thread // 32, "one word": 0 * thread}
    return words[contention]


def shared_cycles(bench: Bench, bits: int, contention: str) -> float:
    """Cycles per request in shared memory, median of the SMs."""
    words, rounds = targets(contention, _THREADS), _ROUNDS[contention]
    output = bench.launch(_kernel(bench, f"shared{bits}"), words, rounds, out=(np.int64, bench.sms * (1 + _THREADS)))
    for block in output[bench.sms :].reshape(bench.sms, -1):
        _check(block, words, bits, rounds)
    return _per_request(output[: bench.sms], rounds)


def global_cycles(bench: Bench, bits: int, contention: str) -> float:
    """Cycles per request in global memory with all SMs at work, median of the SMs."""
    words, rounds = targets(contention, bench.sms * _THREADS), _LONGER * _ROUNDS[contention]
    memory = to_device(np.zeros(words.size, f"uint{bits}"))
    cycles = bench.launch(_kernel(bench, f"global{bits}"), memory, words, rounds, out=(np.int64, bench.sms))
    _check(memory.copy_to_host(), words, bits, rounds)
    return _per_request(cycles, rounds)


def _kernel(bench: Bench, entry: str) -> CudaCKernel:
    return CudaCKernel(source=SOURCE, entry=entry, grid=(bench.sms, 1), block=(_THREADS, 1))


def _check(memory: Any, words: Array, bits: int, rounds: int) -> None:
    """Check every sum: thread i added i + 1 in every round."""
    dtype = np.dtype(f"uint{bits}")
    sums = np.zeros(memory.size, dtype)
    np.add.at(sums, words, np.arange(1, words.size + 1).astype(dtype) * dtype.type(rounds * _STEPS))
    verify("the number of wrong sums", int((memory.astype(dtype) != sums).sum()), 0)


def _per_request(cycles: Array, rounds: int) -> float:
    return median(map(int, cycles)) / (rounds * _STEPS * _THREADS // 32)
