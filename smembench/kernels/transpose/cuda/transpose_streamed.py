"""transposeStreamed: transposeDown with streaming accesses, for lines that are used once.

Loads and stores of global memory carry the cache operator ``.cs``: likely accessed once, so evicted first. That
relieves the L2 of lines that are not used again. Where rows are no multiples of 16 bytes, lines at the edges of tiles
are used again by the neighbouring tile, and elements written one by one carry no hint. Findings:
results/reference/notes/transpose_streamed.md.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.intrinsics.vector import load_vector_streaming, store_vector, store_vector_streaming
from smembench.kernels.numba_cuda import device
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_vectorized import vectorized
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tile_copies import IN_COLUMNS
from smembench.kernels.transpose.tile_geometry import one_tile, vectors_fit
from smembench.model.case import Block, Case


@device
def copy_streaming(tile: Any, place: Any, inp: Any, index: Any) -> None:
    """Copy a vector to shared memory, with lines that the caches may evict first."""
    store_vector(tile, place, load_vector_streaming(inp, index))


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    return vectorized(case, order=IN_COLUMNS, copy=copy_streaming, store=store_vector_streaming)


KERNEL = Kernel(
    problem="transpose",
    name="transposeStreamed",
    kind="cuda",
    summary="transposeDown with streaming accesses, whose lines the caches may drop first",
    build=build,
    computes=TRANSPOSE,
    results=(8, 8),
    default_blocks=(Block(16, 32), Block(16, 16)),
    pad=False,
    tile_elements=one_tile,
    unsupported=vectors_fit,
    standard=False,
    ladder="evict-first hints: every line is used once",
)
