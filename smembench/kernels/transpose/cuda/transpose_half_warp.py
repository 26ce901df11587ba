"""transposeHalfWarp: transposeStreamed whose half-warps access 256 bytes of a row each.

A thread's vector and row are its indices in the block, so in blocks 16 wide a warp covers 16 vectors by 2 rows of the
tile instead of 8 by 4.

It relieves memory: the two halves of 256 bytes are no longer requested by two warps at different times. The price: 16
columns of vectors share 8 groups of four banks, so loads from shared memory have 2-way conflicts. Blocks 8 wide are as
before; in blocks 32 wide a warp covers 512 bytes of one row, and conflicts are 4-way. Where rows are not multiples of
16 bytes, loads have 2-way conflicts, in float16 up to 4-way, and those of odd squares have as many as unaligned_rows.py
says. Findings: results/reference/notes/transpose_half_warp.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from smembench.kernels.transpose.cuda import transpose_streamed
from smembench.kernels.transpose.tile_copies import IN_COLUMNS, as_in_block

KERNEL = replace(
    transpose_streamed.KERNEL,
    name="transposeHalfWarp",
    summary="transposeStreamed whose half-warps access 256 bytes of a row each",
    build=partial(transpose_streamed.streamed, order=IN_COLUMNS, share=as_in_block),
    ladder="256 bytes of a row at once, for 2-way conflicts",
)
