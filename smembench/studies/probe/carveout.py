"""Blocks that an SM holds at once, by dynamic shared memory per block and by the carve-out that the kernel prefers.

Every block stays a while and reports its SM, when it came and when it left; the most that overlap on an SM were
resident. Of an SM's L1 the driver carves out shared memory for a launch, of which a block takes its own and what the
driver reserves for it (CUDA C++ Programming Guide, section "Shared Memory" of the compute capabilities).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from smembench.kernels.program import CudaCKernel
from smembench.model.hardware import WARP
from smembench.studies.probe.figure import Figure, verify

if TYPE_CHECKING:
    from smembench.model.problem import Array
    from smembench.studies.probe.bench import Bench

CAPABILITY = (7, 0)

SOURCE = r"""
// Per block: its SM, the SM's clock when it came and when it left, and whether its shared memory was changed meanwhile.
extern "C" __global__ void stay(long long *out, unsigned words, unsigned cycles)
{
    extern __shared__ unsigned words_of_block[];
    volatile unsigned *memory = words_of_block;
    const long long begin = clock64();
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) memory[i] = blockIdx.x;
    while (clock64() - begin < cycles) {}
    bool changed = false;
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) changed |= memory[i] != blockIdx.x;
    const int any = __syncthreads_or(changed);
    if (threadIdx.x == 0) {
        unsigned sm;
        asm("mov.u32 %0, %%smid;" : "=r"(sm));
        out[4 * blockIdx.x] = sm;
        out[4 * blockIdx.x + 1] = begin;
        out[4 * blockIdx.x + 2] = clock64();
        out[4 * blockIdx.x + 3] = any;
    }
}
"""

_CYCLES = 200_000
"""Cycles that a block runs: many more than the launch of all blocks that fit takes."""
_SIZES = (0, 8, 16, 32, 64, 100)
"""KiB per block; the most that a block can have comes on top."""
_PREFERRING = 16
"""KiB per block of the figures by preference."""
_NO_PREFERENCE, _PREFERENCES = -1, (0, 50, 100)
"""Of the largest carve-out, in per cent."""


def figures(bench: Bench) -> Iterator[Figure]:
    """Resident blocks by size, then by preferred carve-out."""
    most = bench.shared_bytes // 1024
    for size in (*(size for size in _SIZES if size < most), most):
        yield _figure(bench, f"{size} KiB per block", size, _NO_PREFERENCE)
    for percent in _PREFERENCES:
        yield _figure(bench, f"{_PREFERRING} KiB per block, prefers {percent} % shared memory", _PREFERRING, percent)


def resident(blocks: Array) -> Array:
    """The most blocks that overlapped, per SM that had any.

    Args:
        blocks: a row per block: its SM, when it came and when it left.
    """
    return np.array([_overlapping(blocks[blocks[:, 0] == sm, 1:3]) for sm in np.unique(blocks[:, 0])])


def _overlapping(stays: Array) -> int:
    times, changes = stays.T.ravel(), np.repeat([1, -1], len(stays))
    order = np.lexsort((changes, times))  # one that leaves makes room for one that comes at the same time
    return int(np.cumsum(changes[order]).max())


def _figure(bench: Bench, name: str, size: int, percent: int) -> Figure:
    program = CudaCKernel(SOURCE, "stay", grid=(1, 1), block=(WARP, 1), dynamic_bytes=1024 * size)
    bench.set_attribute(program, "PREFERRED_SHARED_MEMORY_CARVEOUT", percent)
    calculated = bench.resident_blocks(program)
    program = replace(program, grid=(bench.sms * (calculated + 1), 1))

    def one() -> float:
        out = bench.launch(program, program.dynamic_bytes // 4, _CYCLES, out=(np.int64, 4 * program.grid[0]))
        blocks = out.reshape(-1, 4)
        verify("the number of blocks whose shared memory was changed", int(blocks[:, 3].sum()), 0)
        return float(np.median(resident(blocks)))

    method = "median over SMs of the blocks of one warp that overlap, by the SM's clock"
    return Figure.of(name, "blocks/SM", bench.trials(one), method, f"{calculated} (driver's calculation)")
