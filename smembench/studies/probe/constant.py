"""The constant caches: latency of dependent loads over arrays of growing size, whose edges are the caches' sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from smembench.kernels.program import CudaCKernel
from smembench.model.measurement import Status
from smembench.studies.probe.figure import Figure
from smembench.studies.probe.timing import CHAIN, per_load, shuffled

if TYPE_CHECKING:
    from smembench.studies.probe.bench import Bench

CAPABILITY = (7, 0)

SOURCE = (
    CHAIN
    + r"""
extern "C" { __constant__ unsigned links[16384]; }

// The array is all of constant memory and so begins at its address 0, which is added for there to be a reference to it.
// The first address comes from memory: if it were the same for all threads, the compiler would make a uniform load.
// The blocks take turns, because SMs share the second cache.
extern "C" __global__ void follow_constant(long long *out, const unsigned *first, volatile unsigned *turn,
                                           unsigned warm, unsigned loads)
{
    while (*turn != blockIdx.x) __nanosleep(500);
    unsigned long long zero;
    asm volatile("mov.u64 %0, links;" : "=l"(zero));
    unsigned at = (unsigned)zero + first[threadIdx.x];
    FOLLOW(asm volatile("ld.const.u32 %0, [%0];" : "+r"(at)))
    out[2 * blockIdx.x] = cycles;
    out[2 * blockIdx.x + 1] = at;
    *turn = blockIdx.x + 1;
}
"""
)

_WORDS = 16384
"""All of constant memory."""
_LINE = 64
"""Bytes from one node of a chain to the next."""
_LOADS = 256
_CURVES = 6
_SMALL = range(1024, 4096 + 1, _LINE)
_LARGE = range(4096, 4 * _WORDS + 1, 2048)
"""Sizes in bytes around the edges of the first and the second cache."""
_RISE = 1.05
"""Above the latency of the sizes before it, a size is beyond the edge."""

_CHAIN = f"one thread, on one SM after the other, dependent loads over an array of a word per {_LINE} bytes"


def figures(bench: Bench) -> Iterator[Figure]:
    """Latency and size of the first and of the second constant cache."""
    for name, sizes, latency, size in (
        ("L1", _SMALL, "17 (mt4g, H100, single loads)", "2112 (mt4g, H100)"),
        ("L1.5", _LARGE, "106 (mt4g, H100, single loads)", "not found (mt4g, H100)"),
    ):
        samples = bench.trials(partial(constant_latency, bench, sizes.start))
        yield Figure.of(f"{name} cache", "cycles", samples, f"{_CHAIN} of {sizes.start} bytes", latency)
        edges = [edge({at: constant_latency(bench, at) for at in sizes}) for _ in range(_CURVES)]
        yield _size(f"{name} cache, size", sizes, edges, size)


def _size(name: str, sizes: range, edges: list[int | None], published: str) -> Figure:
    known = [size for size in edges if size is not None]
    if len(known) < len(edges):
        return Figure.missing(name, Status.SKIPPED, f"no edge up to {sizes[-1]} bytes")
    method = f"{_CHAIN}: the largest with the latency of smaller ones, by steps of {sizes.step}"
    return Figure.of(name, "bytes", known, method, published)


def constant_latency(bench: Bench, size: int) -> float:
    """Cycles of a dependent load from constant memory over an array of ``size`` bytes."""
    order = shuffled(size // _LINE, _LINE)
    links = np.zeros(_WORDS, np.uint32)
    links[order // 4] = np.roll(order, -1)
    warm = -(-order.size // 32) * 32
    kernel = CudaCKernel(source=SOURCE, entry="follow_constant", grid=(bench.sms, 1), block=(1, 1))
    out = (np.int64, 2 * bench.sms)
    output = bench.launch(kernel, order[:1], np.zeros(1, np.uint32), warm, _LOADS, out=out, constant=("links", links))
    return float(np.median(per_load(output, order[np.newaxis], warm, _LOADS)))


def edge(latencies: Mapping[int, float]) -> int | None:
    """The largest size up to which latency stays that of the smallest; None if it stays so to the end.

    Args:
        latencies: by size, the smallest first.
    """
    sizes = list(latencies)
    limit = _RISE * latencies[sizes[0]]
    return next((before for before, size in pairwise(sizes) if latencies[size] > limit), None)
