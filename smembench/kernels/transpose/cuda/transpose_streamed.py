"""transposeStreamed: transposeDown with streaming accesses, since each cache line is used only once.

Global loads and stores carry the cache operator ``.cs``: likely accessed once, so evict first. That relieves the L2 of
lines that are not used again. Where rows are not multiples of 16 bytes, lines at the edges of tiles are used again by
the neighbouring tile, and elements that are written one by one carry no hint. Findings:
results/reference/notes/transpose_streamed.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from smembench.kernels.intrinsics.vector import load_vector_streaming, store_vector, store_vector_streaming
from smembench.kernels.numba_cuda import device
from smembench.kernels.transpose.cuda import transpose_down
from smembench.kernels.transpose.cuda.transpose_vectorized import vectorized
from smembench.kernels.transpose.tile_copies import IN_COLUMNS
from smembench.kernels.types import Array, Index


@device
def copy_streaming(tile: Array, place: Index, inp: Array, index: Index) -> None:
    """Copy a vector to shared memory, with lines that the caches may evict first."""
    store_vector(tile, place, load_vector_streaming(inp, index))


streamed = partial(vectorized, copy=copy_streaming, store=store_vector_streaming)
"""``vectorized`` with streaming accesses."""

KERNEL = replace(
    transpose_down.KERNEL,
    name="transposeStreamed",
    summary="transposeDown with streaming accesses, whose lines the caches may drop first",
    build=partial(streamed, order=IN_COLUMNS),
    ladder="evict-first hints: every line is used once",
)
