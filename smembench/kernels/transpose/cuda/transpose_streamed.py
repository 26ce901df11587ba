"""transposeStreamed: transposeDown with streaming accesses, for lines that are used once.

Loads and stores of global memory carry the cache operator ``.cs``: likely accessed once, so evict them first. What it
relieves: the L2, of lines that nobody asks for again. Where rows are no multiples of 16 bytes, lines at the edges of
tiles are asked for again, by the tile beside, and elements that are written one by one carry no hint.

Predicted: nothing for arrays many times the L2, where each line is evicted before it could be used again. Warm and with
arrays of about its size, a loss or a gain, whichever of input and output the L2 kept from the launch before: evicted
first, neither stays.

Found on an H200 (2026-11-20), float32 in 16x32 blocks, as shares of cudaMemcpy in the same run: 0.978 at 4096² and
0.975 at 16384², where transposeDown reached 0.971 and 0.975; in an earlier run 0.982 at both. It takes both: streaming
loads alone reached 0.946 and 0.955 in another, streaming stores alone 0.967 and 0.976, less than neither. float64 in
16x16 blocks: 0.982 at 8192² and 0.976 at 16352², but 0.915 at 16384², whose rows are a power of two apart.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.intrinsics.vector import load_vector_streaming, store_vector, store_vector_streaming
from smembench.kernels.numba_cuda import device
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_vectorized import vectorized
from smembench.kernels.transpose.pieces import IN_COLUMNS
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tiles import one_tile, vectors_fit
from smembench.model.case import Block, Case


@device
def copy_streaming(tile: Any, place: Any, inp: Any, index: Any) -> None:
    """A vector's way into shared memory, of lines that the caches may drop first."""
    store_vector(tile, place, load_vector_streaming(inp, index))


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    return vectorized(case, order=IN_COLUMNS, copy=copy_streaming, store=store_vector_streaming)


KERNEL = Kernel(
    problem="transpose",
    name="transposeStreamed",
    kind="cuda",
    step=140,
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
