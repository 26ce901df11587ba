"""Conflicts of ldmatrix, by hand: eight rows of 16 bytes are served at a time, and each row takes four banks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs import case_of, cuda_kernel
from smembench.explain.analysis import explain
from smembench.explain.banks import conflict_degree, ideal_wavefronts, wavefronts
from smembench.kernels.matmul.cuda.mma_swizzled import swizzled
from smembench.model.case import Block

ROWS, PART = 8, 16


def rows_at(*begins: int) -> list[int | None]:
    """The addresses of four matrices whose rows begin there."""
    return [matrix * 4096 + begin for matrix in range(4) for begin in begins]


@pytest.mark.parametrize(
    ("apart", "passes"),
    [
        (16, 1),  # one after the other: 128 bytes, every bank once
        (32, 2),  # rows 0 and 4 begin at bank 0, rows 1 and 5 at bank 8 …
        (64, 4),  # mmaPlain's tile of A: rows 0, 2, 4 and 6 begin at bank 0, the others at bank 16
        (80, 1),  # with padding: at banks 0, 20, 8, 28, 16, 4, 24 and 12
        (128, 8),  # all at bank 0
        (256, 8),
        (272, 1),  # mmaPadded's tile of B: 4 banks on from row to row
    ],
)
def test_rows_of_a_matrix_take_turns_at_the_banks_that_they_share(apart: int, passes: int) -> None:
    addresses = rows_at(*(row * apart for row in range(ROWS)))
    assert wavefronts(addresses, PART, "load") == 4 * passes
    assert ideal_wavefronts(addresses, PART, "load") == 4


@given(st.permutations(range(ROWS)), st.lists(st.integers(0, 31), min_size=ROWS, max_size=ROWS))
def test_rows_in_eight_places_of_a_wavefront_have_no_conflicts_wherever_else_they_lie(
    places: list[int], above: list[int]
) -> None:
    addresses = rows_at(*(128 * row + PART * place for row, place in zip(above, places, strict=True)))
    assert conflict_degree(addresses, PART, "load") == 1.0


@pytest.mark.parametrize("width", [32, 64, 128, 256])
def test_a_swizzle_gives_every_part_a_place_of_its_own_and_eight_rows_all_banks(width: int) -> None:
    place = swizzled(width)
    row, col = np.mgrid[0:32, 0:width]
    assert sorted(place(row, col).ravel()) == list(range(32 * width))
    for first in range(0, 32, ROWS):
        for part in range(0, width, ROWS):
            banks = place(row[first : first + ROWS, 0], np.full(ROWS, part)) * 2 // 4 % 32
            assert sorted(banks) == list(range(0, 32, 4))


@pytest.mark.parametrize(
    ("name", "dtype", "loads", "stores"),
    [
        ("mmaPlain", "bfloat16", 4.0, 1.0),
        # The parts that a quarter-warp copies into A's tile lie at banks 0 to 15 and 20 to 35: two passes instead of
        # one, of a copy that is half of all.
        ("mmaPadded", "float16", 1.0, 1.5),
        ("mmaSwizzled", "bfloat16", 1.0, 1.0),
        ("mmaAsync", "float16", 1.0, 1.0),
    ],
)
def test_conflicts_of_the_ladder(name: str, dtype: str, loads: float, stores: float) -> None:
    explained = explain(case_of(cuda_kernel("matmul", name), 256, 256, 256, dtype))
    assert (explained.degree("load"), explained.degree("store")) == (loads, stores)
    assert not explained.trace.mistakes


def test_ragged_sizes_make_no_mistakes() -> None:
    case = case_of(cuda_kernel("matmul", "mmaAsync"), 130, 136, 72, "bfloat16", Block(8, 8))
    for item in (case, replace(case, n=131, k=67)):
        assert not explain(item).trace.mistakes


def test_a_warp_loads_16_by_16_elements_per_request() -> None:
    """Of 128 × 128 results a warp loads 2 parts of A and 4 of B per step, lanes by themselves 8 and 32."""
    requests = {
        name: sum(
            a.requests
            for a in explain(case_of(cuda_kernel("matmul", name), 128, 128, 32, "float16")).shared
            if a.site.kind == "load"
        )
        for name in ("mmaPlain", "mmaPadded")
    }
    warps, steps = 8, 2
    assert requests == {"mmaPlain": warps * steps * (8 + 32), "mmaPadded": warps * steps * (2 + 4)}
