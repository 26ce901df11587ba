"""A tiling in CUDA C for ports: its constants, and the vectors that aligned rows consist of."""

from __future__ import annotations

from smembench.kernels.matmul.tiling import LANES_ACROSS, LANES_DOWN, Tiling
from smembench.model.case import Case
from smembench.model.hardware import WARP

TILING = """
constexpr unsigned A_ACROSS = DEPTH / WIDE, A_STEP = THREADS / A_ACROSS, A_COUNT = ROWS / A_STEP;
constexpr unsigned B_ACROSS = COLUMNS / WIDE, B_STEP = THREADS / B_ACROSS, B_COUNT = DEPTH / B_STEP;
constexpr unsigned WARPS = BX / LANES_ACROSS, DOWN_APART = LANES_DOWN * WIDE, ACROSS_APART = LANES_ACROSS * WIDE;

struct alignas(16) Vector { T lane[WIDE]; };
"""
"""How threads cover the tiles that they load, in vectors, and the distances between their results."""


def constants_of(tiling: Tiling) -> dict[str, int]:
    """The constants that TILING uses."""
    return {
        "WARP": WARP,
        "LANES_DOWN": LANES_DOWN,
        "LANES_ACROSS": LANES_ACROSS,
        "WIDE": tiling.vector,
        "DOWN": tiling.down,
        "ACROSS": tiling.across,
        "DEPTH": tiling.depth,
        "ROWS": tiling.rows,
        "COLUMNS": tiling.columns,
        "PITCH": tiling.pitch,
        "THREADS": tiling.threads,
        "BLOCKS": tiling.launch_bounds[1],
    }


def no_whole_vectors(case: Case, tiling: Tiling) -> str | None:
    """The reason to refuse rows that are not made of vectors, or None."""
    if tiling.widths(case) == (tiling.vector, tiling.vector):
        return None
    of_vectors = f"n, k and stride that are multiples of {tiling.vector}"
    return f"the CUDA C port of {case.kernel} takes whole vectors only: {of_vectors}"
