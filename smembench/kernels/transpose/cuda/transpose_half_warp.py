"""transposeHalfWarp: transposeStreamed whose half-warps access 256 bytes of a row each.

What changes: a thread's vector and row are its indices in the block, so that in blocks 16 wide a warp lies over the
tile as 16 vectors by 2 rows instead of 8 by 4. What it relieves: the memory, of two warps asking at two times for the
two halves of 256 bytes. The price: 16 columns of vectors share 8 groups of four banks, and loads from shared memory
have the 2-way conflicts that transposeVectorized avoids. Blocks 8 wide are as before; in blocks 32 wide a warp lies
over 512 bytes of one row, and conflicts are 4-way.

Where rows are no multiple of 16 bytes the writes are in half-warps as well; loads then have 2-way conflicts where
unaligned.py says none, but no more than it says for odd squares, except 4-way ones of float16.

Predicted: a gain of unknown size wherever memory limits, and no loss by conflicts: 512 bytes take 20 wavefronts of
shared memory and caches instead of 16, float16 28 instead of 20, and the memory 65 cycles of an SM.
Found on an H200 (2026-11-20), as shares of cudaMemcpy in the same run, where transposeStreamed reached 0.978 and 0.975:
float32 0.981 at 4096² and 0.982 at 16384²; float16 at 16384² 0.980 for 0.959, at 4096² 0.977 for 0.976, but 0.6 to 2 %
less in two other runs; float64 at 8192² 0.987 for 0.982. Without aligned rows 0.4 to 1.7 % more. Nsight Compute found
twice the wavefronts of shared loads, the data pipe of the L1 busy for 34 % of the time instead of 29 %, and the same
requests and bytes of the L2 and the DRAM.

Dead ends, there too, in CUDA C: 512 bytes of a row for a warp in tiles of 128 × 64 and 64 × 128, 1024 threads; 256
bytes on one side only, half of the gain; a tile of 32 × 32 for each warp and no barrier, 0.93; rows of the next tiles
prefetched into the L2, less; no comparisons for whole tiles, no difference.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.vector import store_vector_streaming
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_streamed import copy_streaming
from smembench.kernels.transpose.cuda.transpose_vectorized import vectorized
from smembench.kernels.transpose.pieces import IN_COLUMNS, as_in_block
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tiles import one_tile, vectors_fit
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    return vectorized(case, order=IN_COLUMNS, position=as_in_block, copy=copy_streaming, store=store_vector_streaming)


KERNEL = Kernel(
    problem="transpose",
    name="transposeHalfWarp",
    kind="cuda",
    step=144,
    summary="transposeStreamed whose half-warps access 256 bytes of a row each",
    build=build,
    computes=TRANSPOSE,
    results=(8, 8),
    default_blocks=(Block(16, 32), Block(16, 16)),
    pad=False,
    tile_elements=one_tile,
    unsupported=vectors_fit,
    standard=False,
    ladder="256 bytes of a row at once, for 2-way conflicts",
)
