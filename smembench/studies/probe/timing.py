"""CUDA C with which the probes time themselves: chains of dependent loads, and whole blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from smembench.studies.probe.figure import verify

if TYPE_CHECKING:
    from smembench.model.problem import Array

CHAIN = r"""
// One thread follows a chain of addresses in three stretches of loads, multiples of 32: LOAD replaces `at` by
// what it points to. The same code times all three, and `cycles` of `loads` loads is what the third, twice as long,
// takes more than the second, without any overhead.
#define FOLLOW(LOAD)                                                                   \
    const unsigned stretches[3] = {warm, loads, 2 * loads};                            \
    long long cycles = 0;                                                              \
    _Pragma("unroll 1") for (int stretch = 0; stretch < 3; stretch++) {                \
        const long long begin = clock64();                                             \
        _Pragma("unroll 1")                                                            \
        for (unsigned done = 0; done < stretches[stretch]; done += 32) {               \
            _Pragma("unroll") for (int step = 0; step < 32; step++) { LOAD; }          \
        }                                                                              \
        cycles = clock64() - begin - (stretch == 2 ? cycles : 0);                      \
    }
"""

SPAN = r"""
// Cycles from the first warp of a block that begins to the last whose accesses have ended, for out[blockIdx.x].
#define BEGIN                                                                          \
    __shared__ long long first, last;                                                  \
    if (threadIdx.x == 0) { first = 1ll << 62; last = 0; }                             \
    __syncthreads();                                                                   \
    const long long begin = clock64();

#define END                                                                            \
    __threadfence_block();                                                             \
    const long long end = clock64();                                                   \
    atomicMin(&first, begin);                                                          \
    atomicMax(&last, end);                                                             \
    __syncthreads();                                                                   \
    if (threadIdx.x == 0) out[blockIdx.x] = last - first;
"""


def shuffled(count: int, step: int = 1) -> Array:
    """The multiples of ``step`` below ``count * step`` in an order that no prefetcher guesses; always the same."""
    return np.random.default_rng(1).permutation(count).astype(np.uint32) * np.uint32(step)


def per_load(output: Array, chains: Array, warm: int, loads: int) -> Array:
    """Cycles per load of what each chain returned: the cycles of ``loads`` loads, and the node at which it ended.

    Args:
        chains: the nodes of each chain in its order, a row per chain, or one row for all.

    Raises:
        Unverified: if that is not where that number of loads leads.
    """
    cycles, ends = output.reshape(-1, 2).T
    right = chains[:, (warm + 3 * loads) % chains.shape[1]]
    verify("the number of chains with a wrong end", int((ends != right).sum()), 0)
    return cycles / loads
