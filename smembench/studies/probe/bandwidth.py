"""Bandwidth of shared memory: loads and stores of 32, 64 and 128 bits without conflicts, by all warps of a block."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from smembench.kernels.program import CudaCKernel
from smembench.model.hardware import BANKS, WORD_BYTES
from smembench.studies.probe.figure import Figure, at_least, verify
from smembench.studies.probe.timing import SPAN

if TYPE_CHECKING:
    from smembench.model.problem import Array
    from smembench.studies.probe.bench import Bench

CAPABILITY = (7, 0)

SOURCE = (
    SPAN
    + r"""
const unsigned THREADS = 1024, WORDS = 8, STEPS = 8;

template <int WIDTH> __device__ void load(unsigned (&v)[WIDTH], unsigned at)
{
    if constexpr (WIDTH == 1)
        asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v[0]) : "r"(at));
    if constexpr (WIDTH == 2)
        asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "r"(at));
    if constexpr (WIDTH == 4)
        asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at));
}

template <int WIDTH> __device__ void store(unsigned at, unsigned v)
{
    if constexpr (WIDTH == 1)
        asm volatile("st.volatile.shared.u32 [%0], %1;" :: "r"(at), "r"(v) : "memory");
    if constexpr (WIDTH == 2)
        asm volatile("st.volatile.shared.v2.u32 [%0], {%1, %1};" :: "r"(at), "r"(v) : "memory");
    if constexpr (WIDTH == 4)
        asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(at), "r"(v) : "memory");
}

// Each thread has WORDS words, in vectors of WIDTH that are a block apart; its sum is out[blocks + thread].
template <int WIDTH, bool STORES> __device__ void stream(long long *out, unsigned rounds)
{
    const unsigned vectors = WORDS / WIDTH, apart = THREADS * WIDTH * 4;
    extern __shared__ __align__(16) unsigned memory[];
    const unsigned at = (unsigned)__cvta_generic_to_shared(memory) + threadIdx.x * WIDTH * 4;
    for (unsigned i = threadIdx.x; i < WORDS * THREADS; i += THREADS) memory[i] = 2654435761u * i;
    unsigned sum = 0;
    BEGIN
    #pragma unroll 1
    for (unsigned round = 0; round < rounds; round++) {
        unsigned v[STEPS][WIDTH];
        #pragma unroll
        for (unsigned step = 0; step < STEPS; step++) {
            if constexpr (STORES) store<WIDTH>(at + step % vectors * apart, round + threadIdx.x);
            else load<WIDTH>(v[step], at + step % vectors * apart);
        }
        if constexpr (!STORES)
            for (unsigned step = 0; step < STEPS; step++)
                for (int word = 0; word < WIDTH; word++) sum += v[step][word];
    }
    END
    if constexpr (STORES)
        for (unsigned i = 0; i < WORDS; i++) sum += memory[(i / WIDTH * THREADS + threadIdx.x) * WIDTH + i % WIDTH];
    out[gridDim.x + blockIdx.x * THREADS + threadIdx.x] = sum;
}

#define ENTRY(NAME, WIDTH, STORES)                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS) NAME(long long *out, unsigned rounds) \
    { stream<WIDTH, STORES>(out, rounds); }

ENTRY(loads32, 1, false) ENTRY(loads64, 2, false) ENTRY(loads128, 4, false)
ENTRY(stores32, 1, true) ENTRY(stores64, 2, true) ENTRY(stores128, 4, true)
"""
)

_THREADS, _WORDS, _STEPS = 1024, 8, 8
"""Constants of the source."""
_BYTES = 2**16
"""Bytes per thread and launch that are timed on the SM; by events several times as many, as a launch takes longer."""
_LONGER = 8
_PEAK = BANKS * WORD_BYTES
"""Bytes that shared memory delivers per clock."""
_PUBLISHED = "124.1 of 128 (Luo et al. 2024)"


def figures(bench: Bench) -> Iterator[Figure]:
    """Bytes per clock and SM by access, and bytes per second of all SMs together."""
    for what in ("loads", "stores"):
        for bits in (32, 64, 128):
            samples = bench.trials(partial(bytes_per_clock, bench, what, bits))
            method = (
                f"{_THREADS} threads per SM, cycles from the first warp's begin to the last's end, median of the SMs"
            )
            yield Figure.of(f"{bits}-bit {what}", "B/clk/SM", samples, method, _PUBLISHED if bits == 32 else None)
    for what in ("loads", "stores"):
        samples = bench.trials(partial(terabytes_per_second, bench, what, 128))
        yield Figure.of(f"128-bit {what}, all SMs", "TB/s", samples, "the same, a launch timed by events")


def bytes_per_clock(bench: Bench, what: str, bits: int) -> float:
    """Bytes that an SM loads or stores per clock."""
    kernel, rounds = _kernel(bench, what, bits, _BYTES)
    output = bench.launch(kernel, rounds, out=(np.int64, bench.sms * (1 + _THREADS)))
    _check(output[bench.sms :], what, bits, rounds)
    cycles = median(map(int, output[: bench.sms]))
    at_least("the cycles", cycles, _BYTES * _THREADS / _PEAK)
    return _BYTES * _THREADS / cycles


def terabytes_per_second(bench: Bench, what: str, bits: int) -> float:
    """Terabytes that all SMs load or store per second."""
    size = _LONGER * _BYTES
    kernel, rounds = _kernel(bench, what, bits, size)
    seconds, output = bench.seconds(kernel, rounds, out=(np.int64, bench.sms * (1 + _THREADS)))
    _check(output[bench.sms :], what, bits, rounds)
    return size * _THREADS * bench.sms / seconds / 1e12


def _kernel(bench: Bench, what: str, bits: int, size: int) -> tuple[CudaCKernel, int]:
    """The kernel with a block per SM, and its rounds for ``size`` bytes per thread."""
    shared = 4 * _WORDS * _THREADS
    kernel = CudaCKernel(SOURCE, f"{what}{bits}", grid=(bench.sms, 1), block=(_THREADS, 1), dynamic_bytes=shared)
    return kernel, size // (bits // 8) // _STEPS


def _check(sums: Array, what: str, bits: int, rounds: int) -> None:
    """Check every thread's sum: of all that it loaded, or of its words after the last round of stores."""
    threads = np.arange(_THREADS, dtype=np.uint32)
    if what == "stores":
        expected = np.uint32(_WORDS) * (np.uint32(rounds - 1) + threads)
    else:
        words = np.arange(_WORDS * _THREADS, dtype=np.uint32) * np.uint32(2654435761)
        own = words.reshape(-1, _THREADS, bits // 32).sum(axis=(0, 2), dtype=np.uint32)
        expected = own * np.uint32(rounds * _STEPS * bits // 32 // _WORDS)
    wrong = int((sums.reshape(-1, _THREADS) != expected).sum())
    verify(f"the number of threads whose {bits}-bit {what} add up to something else", wrong, 0)
