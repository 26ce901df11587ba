"""Patterns in shared memory: which bank conflicts they have, and what those cost.

On a tile of the block's shape, whose elements have 4 bytes:

- setRowReadRow stores and loads ``tile[threadIdx.y][threadIdx.x]``: no conflict, a thread loads what it stored.
- setColReadCol stores and loads ``tile[threadIdx.x][threadIdx.y]``, on any block ``tile[icol][irow]``: a column of a
  32-wide tile lies in one bank, so both have 32-way conflicts (16-way in a 32×16 block, whose warps take two columns of
  16). One column of padding puts a column into different banks, and two put both columns.
- setRowReadCol stores along rows and loads down columns, as a transpose does: the load has the conflict. icol and irow
  are the thread's place in the transposed block. In a square block this is the slides' ``threadIdx.x * blockDim.y +
  threadIdx.y``; in a rectangle theirs is the index in a tile whose rows are ``blockDim.y`` long, while here they keep
  ``blockDim.x`` and their padding.
- setColReadRow is its mirror: the store has the conflict.

Over a line of 1024 elements, the slides' three situations and their general case:

- parallelAccess: lane l stores and loads word l, one wavefront serves the warp.
- serialAccess: word 32·l, the bank serves one lane at a time, a 32-way conflict.
- broadcastAccess: all lanes load word 0, which one wavefront gives to the whole warp. What the other lanes store is not
  read again.
- strided: element l·stride. Of 4-byte elements gcd(stride, 32) meet in each bank they touch: odd strides are free of
  conflicts, and the powers of two are the steps of a staircase down to one word per clock.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from smembench.kernels.access.line import apart, by_stride, first_of_warp, in_one_bank, line_tiles
from smembench.kernels.access.passes import LayoutOf, build, column, row, variants
from smembench.kernels.access.problem import BROADCAST, READ_COLUMNS, SET_COLUMNS, STAY
from smembench.kernels.kernel import Kernel

BOTH, NEITHER = "bank conflicts on both sides", "no conflicts"
ON_LOAD, ON_STORE = "bank conflicts on the load", "bank conflicts on the store"


def _line(name: str, summary: str, sets: LayoutOf, reads: LayoutOf, computes: str = STAY) -> Kernel:
    return Kernel(
        problem="access",
        name=name,
        kind="cuda",
        summary=summary,
        build=partial(build, sets=sets, reads=reads),
        computes=computes,
        blocks=False,
        tile_elements=line_tiles,
    )


_STRIDED = _line("strided", "lanes a stride apart: gcd(stride, 32)-way conflicts", by_stride, by_stride)

KERNELS = (
    _line(
        "broadcastAccess",
        "one word loaded by all lanes: one wavefront gives it to all",
        apart,
        first_of_warp,
        BROADCAST,
    ),
    _line("parallelAccess", "a bank per lane: one wavefront serves the warp", apart, apart),
    _line("serialAccess", "one bank for all lanes: a wavefront per lane", in_one_bank, in_one_bank),
    *variants("setColReadCol", STAY, "columns stored, columns loaded", BOTH, sets=column, reads=column),
    *variants("setColReadRow", SET_COLUMNS, "columns stored, rows loaded", ON_STORE, sets=column, reads=row),
    *variants(
        "setRowReadCol",
        READ_COLUMNS,
        "rows stored, columns loaded",
        ON_LOAD,
        sets=row,
        reads=column,
        standard=("", "Pad"),
    ),
    *variants("setRowReadRow", STAY, "rows stored, rows loaded", NEITHER, sets=row, reads=row),
    replace(_STRIDED, strided=True, standard=False),
)
