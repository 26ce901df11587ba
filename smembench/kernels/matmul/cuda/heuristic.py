"""heuristic: for each product on tensor cores the kernel, tile and cluster with the fewest estimated cycles.

1. Up to 8 rows, fewRows: each lane loads what it multiplies.
2. Rows that the TMA takes: fewRowsClustered where all tiles run at once, wgmmaStored, wgmmaClustered, or
   wgmmaOverlapped where k is long. A multiprocessor's time is what its tiles take per step along k, by products or by
   lines of 128 bytes (tile_choice.py), times the steps, and per wave of tiles the prologue and epilogue, which
   wgmmaOverlapped hides.
3. Other rows: wgmmaPacked, after copies, then mmaAsync.

The numbers are of the 132 multiprocessors of an H100 or H200. Findings: results/reference/notes/few_rows.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf, prod

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.cuda import (
    few_rows,
    few_rows_clustered,
    mma_async,
    wgmma_clustered,
    wgmma_overlapped,
    wgmma_packed,
    wgmma_stored,
)
from smembench.kernels.matmul.tile_choice import WAVE_CYCLES, cycles_in_clusters, read_cycles
from smembench.kernels.matmul.warp_groups import Tile
from smembench.kernels.program import NumbaKernel, Program
from smembench.model.case import BY_COLUMNS, BY_ROWS, Block, Case
from smembench.model.formats import NARROW
from smembench.model.hardware import SM90_MULTIPROCESSORS

FEW = 8
"""Rows up to which loads straight into registers are faster than tiles."""
WARPS = {BY_COLUMNS: 8, BY_ROWS: 16}
"""Of a block of fewRows."""
CLUSTERED, OVERLAPPED = 1.2, 0.85
"""Factors of the kernels' times over their counted cycles; fitted."""
LAST = (wgmma_packed.KERNEL, mma_async.KERNEL)
"""For rows that the TMA does not take."""


def _few(case: Case) -> float:
    form = few_rows_clustered.form_of(case)
    return form.cycles(case) if form.waves(case) == 1 else inf


def _stored(case: Case) -> float:
    tile = wgmma_stored.tile_of(case)
    waves = ceil_div(prod(tile.grid(case)), SM90_MULTIPROCESSORS)
    return _cycles(tile, case) + waves * WAVE_CYCLES


def _clustered(case: Case) -> float:
    tile, cluster = wgmma_clustered.tile_of(case), wgmma_clustered.CLUSTER
    tiles = prod(replace(tile, rows=cluster * tile.rows).grid(case))
    waves = ceil_div(tiles, SM90_MULTIPROCESSORS // cluster)
    return _cycles(tile, case, cluster, CLUSTERED) + waves * WAVE_CYCLES


def _overlapped(case: Case) -> float:
    tile = wgmma_overlapped.tile_of(case)
    if ceil_div(case.depth, tile.depth) < 4 * wgmma_overlapped.EDGE:
        return inf
    return _cycles(tile, case, 1, OVERLAPPED) + WAVE_CYCLES


def _cycles(tile: Tile, case: Case, cluster: int = 1, factor: float = 1.0) -> float:
    """Of a multiprocessor, or of the memory if it has more."""
    blocks = min(prod(tile.grid(case)), SM90_MULTIPROCESSORS)
    read = read_cycles(case, blocks * tile.stages * tile.columns // cluster * ROW_BYTES)
    return max(factor * ceil_div(case.depth, tile.depth) * cycles_in_clusters(tile, case, cluster), read)


ESTIMATES = (
    (wgmma_stored.KERNEL, _stored),
    (wgmma_clustered.KERNEL, _clustered),
    (wgmma_overlapped.KERNEL, _overlapped),
    (few_rows_clustered.KERNEL, _few),
)
"""Kernels that copy tiles by the TMA, and their cycles."""


@cache
def choice_of(case: Case) -> tuple[Kernel, Case]:
    """The kernel for a case, and the case in its block; of those that do not take it the last."""
    straight = replace(case, block=Block(32, WARPS[case.b_layout]))
    if case.m <= FEW and _takes(few_rows.KERNEL, straight):
        return few_rows.KERNEL, _of(few_rows.KERNEL, straight)
    taking = [(cycles(case), number) for number, (kernel, cycles) in enumerate(ESTIMATES) if _takes(kernel, case)]
    kernel = ESTIMATES[min(taking)[1]][0] if taking else next((one for one in LAST if _takes(one, case)), LAST[-1])
    return kernel, _of(kernel, case)


def _of(kernel: Kernel, case: Case) -> Case:
    return replace(case, kernel=kernel.name)


def _takes(kernel: Kernel, case: Case) -> bool:
    return kernel.refusal(_of(kernel, case)) is None


def build(case: Case) -> Program:
    """The chosen kernel's program; its variant names the kernel too, since those of two kernels may be alike."""
    kernel, chosen = choice_of(case)
    program = kernel.build(chosen)
    assert isinstance(program, NumbaKernel)
    return replace(program, variant=f"{kernel.name} {program.variant}".rstrip())


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
    dtypes=NARROW,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="9.0a",
)
