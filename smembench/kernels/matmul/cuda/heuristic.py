"""heuristic: for each product the kernel, tile and cluster with the fewest estimated cycles.

1. Up to 8 rows, fewRows, and in float32 up to 16, oneRow: each lane loads what it multiplies.
2. On tensor cores, for rows that the TMA takes: fewRowsClustered, wgmmaClustered, or where k is long wgmmaStored or
   wgmmaOverlapped, by the estimated cycles of their products and copies (tile_choice.py).
3. Other rows: wgmmaPacked, after copies, then mmaAsync.
4. In float32: splitK or streamK in one of their tiles, or for small products tiled or oneRow (float32_tiles.py).

The numbers are of the 132 multiprocessors of an H100 or H200. Findings: results/reference/notes/few_rows.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf

from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul import float32_tiles
from smembench.kernels.matmul.cuda import (
    few_rows,
    few_rows_clustered,
    mma_async,
    one_row,
    wgmma_clustered,
    wgmma_overlapped,
    wgmma_packed,
    wgmma_stored,
)
from smembench.kernels.matmul.tile_choice import cycles, launch_cycles
from smembench.kernels.program import NumbaKernel, Program
from smembench.model.case import BY_COLUMNS, BY_ROWS, Block, Case
from smembench.model.formats import NARROW

FEW = ((few_rows.KERNEL, 8), (one_row.KERNEL, 16))
"""Kernels that load straight into registers, and the rows up to which that is faster than tiles."""
WARPS = {BY_COLUMNS: 8, BY_ROWS: 16}
"""Of a block of theirs."""
LAST = (wgmma_packed.KERNEL, mma_async.KERNEL)
"""For rows that the TMA does not take."""
LONG = 16
"""Steps along k from which wgmmaStored and wgmmaOverlapped are considered: where k was shorter, their tiles took up to
29 % longer than the best one on an H200."""


def _few(case: Case) -> float:
    return few_rows_clustered.form_of(case).cycles(case)


def _clustered(case: Case) -> float:
    return launch_cycles(wgmma_clustered.tile_of(case), case)


def _stored(case: Case) -> float:
    tile = wgmma_stored.tile_of(case)
    return cycles(tile, case) if case.depth >= LONG * tile.depth else inf


def _overlapped(case: Case) -> float:
    tile = wgmma_overlapped.tile_of(case)
    return cycles(tile, case, overlapped=True) if case.depth >= LONG * tile.depth else inf


ESTIMATES = (
    (wgmma_stored.KERNEL, _stored),
    (wgmma_clustered.KERNEL, _clustered),
    (wgmma_overlapped.KERNEL, _overlapped),
    (few_rows_clustered.KERNEL, _few),
)
"""Kernels that copy tiles by the TMA, and their cycles."""


@cache
def choice_of(case: Case) -> tuple[Kernel, Case]:
    """The kernel for a case, and the case in its block; of those that do not take it the last for its type."""
    straight = replace(case, block=Block(32, WARPS[case.b_layout]))
    for kernel, rows in FEW:
        if case.m <= rows and _takes(kernel, straight):
            return kernel, _of(kernel, straight)
    taking = [(estimate(case), number) for number, (kernel, estimate) in enumerate(ESTIMATES) if _takes(kernel, case)]
    if taking:
        kernel = ESTIMATES[min(taking)[1]][0]
    elif case.dtype == "float32":
        return float32_tiles.choice_of(case)
    else:
        of_type = [one for one in LAST if one.takes(case.dtype)] or [LAST[-1]]
        kernel = next((one for one in of_type if _takes(one, case)), of_type[-1])
    return kernel, _of(kernel, case)


def _of(kernel: Kernel, case: Case) -> Case:
    block = case.block or next(iter(kernel.default_blocks if kernel.blocks else ()), None)
    return replace(case, kernel=kernel.name, block=block)


def _takes(kernel: Kernel, case: Case) -> bool:
    return kernel.refusal(_of(kernel, case)) is None


def build(case: Case) -> Program:
    """The chosen kernel's program; its variant names kernel and block too: kept machine code is of one of each."""
    kernel, chosen = choice_of(case)
    program = kernel.build(chosen)
    assert isinstance(program, NumbaKernel)
    return replace(program, variant=f"{kernel.name} {chosen.block or ''} {program.variant}")


def elements(case: Case) -> int:
    """The chosen kernel's ``tile_elements``."""
    kernel, chosen = choice_of(case)
    return kernel.tile_elements(chosen)


def dynamic_elements(case: Case) -> int:
    """The chosen kernel's ``dynamic_elements``."""
    kernel, chosen = choice_of(case)
    return kernel.dynamic_elements(chosen)


def unsupported(case: Case) -> str | None:
    """The reason of the last kernel, if none takes a case, or None."""
    kernel, chosen = choice_of(case)
    return kernel.refusal(chosen)


KERNEL = Kernel(
    problem="matmul",
    name="heuristic",
    kind="cuda",
    summary="the kernel and tile that a product's shape and type call for",
    build=build,
    blocks=False,
    tile_elements=elements,
    dynamic_elements=dynamic_elements,
    dtypes=(*NARROW, "float32"),
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="9.0a",
    standard=NARROW,
)
