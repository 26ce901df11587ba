"""Bank conflicts: what an n-way conflict costs beside a load without one, with so many loads in flight that only the
banks limit them."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from smembench.kernels.program import CudaCKernel
from smembench.studies.probe.figure import Figure, at_least, verify
from smembench.studies.probe.timing import SPAN

if TYPE_CHECKING:
    from smembench.model.problem import Array
    from smembench.studies.probe.bench import Bench

CAPABILITY = (7, 0)

SOURCE = (
    SPAN
    + r"""
const unsigned STEPS = 8, CHUNK = 1024;

// Each lane loads the word words[lane] of one chunk of shared memory after the other; a thread's sum is
// out[blocks + thread].
extern "C" __global__ void __launch_bounds__(1024) conflicts(long long *out, const unsigned *words, unsigned rounds)
{
    extern __shared__ unsigned memory[];
    for (unsigned i = threadIdx.x; i < STEPS * CHUNK; i += blockDim.x) memory[i] = 2654435761u * i;
    const unsigned at = (unsigned)__cvta_generic_to_shared(memory) + 4 * words[threadIdx.x % 32];
    unsigned sum = 0;
    BEGIN
    #pragma unroll 1
    for (unsigned round = 0; round < rounds; round++) {
        unsigned v[STEPS];
        #pragma unroll
        for (unsigned step = 0; step < STEPS; step++)
            asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(v[step]) : "r"(at + step * CHUNK * 4));
        for (unsigned step = 0; step < STEPS; step++) sum += v[step];
    }
    END
    out[gridDim.x + blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
)

_THREADS, _STEPS, _CHUNK = 1024, 8, 1024
"""The latter as in the source."""
_ROUNDS = 512
"""Rounds without a conflict; n-way conflicts take an nth as many."""
_TRIALS = 7
_SHOWN = (2, 3, 4, 8, 16, 32)
_METHOD = f"{_THREADS} threads per SM with {_STEPS} loads in flight each, cycles per load over those without a conflict"


def figures(bench: Bench) -> Iterator[Figure]:
    """The cost of some conflicts, and of all from 1 to 32 ways the one that is farthest from n."""
    trials = [costs(bench) for _ in range(_TRIALS)]
    for n in _SHOWN:
        yield Figure.of(f"{n}-way conflict", "×", [trial[n - 1] for trial in trials], _METHOD)
    worst = [max((cost / n for n, cost in enumerate(trial, 1)), key=lambda share: abs(share - 1)) for trial in trials]
    yield Figure.of("farthest from n", "× n", worst, f"{_METHOD} and over n, of n from 1 to 32 the farthest from 1")


def costs(bench: Bench) -> list[float]:
    """Cycles per load of n-way conflicts over those of loads without one, for n from 1 to 32."""
    cycles = [cycles_per_load(bench, n) for n in range(1, 33)]
    return [value / cycles[0] for value in cycles]


def words(n: int) -> Array:
    """By lane, the word that it loads: n lanes each from one bank and different rows, the last bank has fewer."""
    lanes = np.arange(32, dtype=np.uint32)
    by_lane: Array = lanes % n * 32 + lanes // n
    return by_lane


def cycles_per_load(bench: Bench, n: int) -> float:
    """Cycles per request of loads with an n-way conflict, median of the SMs."""
    rounds = -(-_ROUNDS // n)
    shared = 4 * _STEPS * _CHUNK
    kernel = CudaCKernel(SOURCE, "conflicts", grid=(bench.sms, 1), block=(_THREADS, 1), dynamic_bytes=shared)
    loaded = words(n).astype(np.uint32)
    output = bench.launch(kernel, loaded, rounds, out=(np.int64, bench.sms * (1 + _THREADS)))
    memory = np.arange(_STEPS * _CHUNK, dtype=np.uint32) * np.uint32(2654435761)
    lanes = memory.reshape(_STEPS, _CHUNK)[:, loaded].sum(axis=0, dtype=np.uint32) * np.uint32(rounds)
    wrong = int((output[bench.sms :].reshape(-1, 32) != lanes).sum())
    verify(f"the number of threads whose {n}-way loads add up to something else", wrong, 0)
    cycles = median(map(int, output[: bench.sms])) / (rounds * _STEPS * _THREADS // 32)
    at_least("the cycles of a request", cycles, n)
    return cycles
