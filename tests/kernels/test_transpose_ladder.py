"""The transposes of the ladder: what the model and the compiler say of them. Their results: tests/values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import cycle, pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import Ptx
from ladder import DOWN, HALF_WARPS, STREAMED, VECTORIZED
from ladder import transpose as case
from programs import numba_kernel
from smembench.explain import analysis
from smembench.explain.analysis import explain
from smembench.explain.ptx.trace import Chosen
from smembench.kernels.intrinsics.vector import vector_width
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.registry import kernel_of
from smembench.kernels.transpose.cuda.transpose_paired import APART
from smembench.kernels.transpose.tile_copies import in_pairs
from smembench.model.case import Block, Case
from smembench.model.problem import ITEMSIZE
from traces import elements

DTYPES = PROBLEMS["transpose"].dtypes
CLIMBED = ("transposeCoarsened", "transposeSwizzled", *VECTORIZED)


def of_every_step() -> Iterator[Case]:
    """Every step in every dtype, in its blocks by turns; int32 is moved like float32."""
    blocks = cycle((0, 1))
    for name, dtype in product(CLIMBED, ("float64", "float32", "float16")):
        yield case(name, dtype, block=kernel_of(case(name)).default_blocks[next(blocks)])


@pytest.mark.parametrize(("name", "dtype"), [*product(CLIMBED, DTYPES)])
def test_every_step_takes_every_dtype_in_its_blocks(name: str, dtype: str) -> None:
    kernel = kernel_of(case(name))
    assert {kernel.refusal(case(name, dtype, block=block)) for block in kernel.default_blocks} == {None}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in of_every_step()])
def test_every_step_is_coalesced_and_has_the_conflicts_that_it_says(case: Case) -> None:
    explained = explain(case)
    assert {access.efficiency for access in explained.memory} == {1.0}
    loads = 2.0 if case.kernel in HALF_WARPS else 1.0
    if (case.kernel, case.dtype) == ("transposeCoarsened", "float16"):
        loads = 1.5  # half of the columns of a tile padded by one element begin in the upper half of a word
    assert (explained.degree("store"), explained.degree("load")) == (1.0, loads)
    sites = {request.site for request in explained.trace.requests}
    single = ITEMSIZE[case.dtype]
    wide = 16 if case.kernel in VECTORIZED else single
    whole = {("global", "load"): wide, ("global", "store"): wide, ("shared", "store"): wide}
    assert {(site.space, site.kind): site.width for site in sites} == whole | {("shared", "load"): single}


@pytest.mark.parametrize(("across", "loads"), [(8, 1.0), (16, 2.0), (32, 4.0)])
@pytest.mark.parametrize("name", HALF_WARPS)
def test_a_warp_lies_over_the_tile_as_it_lies_in_the_block(name: str, across: int, loads: float) -> None:
    """So many vectors of one row of the input, and of the output, are asked for at once."""
    chosen = case(name, block=Block(across, 16))
    explained = explain(chosen)
    for request in explained.trace.requests:
        if request.site.space == "shared":
            continue
        addresses = [address for address in request.addresses if address is not None]
        runs = sum(after - before != 16 for before, after in pairwise(addresses)) + 1
        assert (len(addresses), runs) == (32, 32 // across)
    assert explained.degree("load") == loads


@settings(max_examples=50)
@given(st.integers(0, 6), st.integers(1, 4), st.integers(1, 5))
def test_columns_in_pairs_are_all_columns_and_two_in_turn_are_so_far_apart(power: int, groups: int, rows: int) -> None:
    apart = 2**power
    columns = groups * 2 * apart
    order = in_pairs(apart)
    assert order.grid(columns, rows) == (rows, columns)
    tiles = [tuple(map(int, order.tile_of(x, y))) for y in range(columns) for x in range(rows)]
    assert sorted(tiles) == sorted(product(range(columns), range(rows)))
    assert [down for _, down in tiles] == [*range(rows)] * columns
    taken = [across for across, _ in tiles[::rows]]
    assert {odd - even for even, odd in zip(taken[::2], taken[1::2], strict=True)} == {apart}


@pytest.mark.parametrize(
    ("dtype", "n", "m", "pairs"),
    [
        ("float64", 16384, 16384, True),
        ("float64", 16384, 2, True),
        ("float32", 32768, 4096, True),
        ("float16", 131072, 8, True),
        ("float32", 16384, 16384, False),
        ("float64", 16352, 16384, False),
        ("float32", 3 * 32768, 4096, False),
        ("float64", 16384, 4097, False),
    ],
)
def test_columns_are_paired_where_rows_are_powers_of_two_from_128_kib_on(
    dtype: str, n: int, m: int, pairs: bool
) -> None:
    for block in (Block(8, 16), Block(16, 16), Block(32, 32)):
        program, plain = (numba_kernel(case(name, dtype, n, m, block)) for name in reversed(HALF_WARPS))
        assert (program.variant == "in pairs") is pairs
        assert program.grid == plain.grid
        if pairs:
            # Whole groups of columns: no tile is left over, and none is taken twice.
            assert program.grid[1] % (2 * APART // (16 * block.x)) == 0
        else:
            assert program.variant == plain.variant


@pytest.mark.parametrize(("rows", "columns"), [(1000, 4100), (4160, 72)])
def test_who_moves_a_tile_and_when_does_not_change_what_it_costs(rows: int, columns: int) -> None:
    """Blocks at the edge count for what they are."""
    plain, *others = (explain(case(name, columns=columns, rows=rows, block=Block(8, 16))) for name in VECTORIZED)
    for other in others:
        assert other.traffic == plain.traffic
        assert (other.degree("store"), other.degree("load")) == (1.0, 1.0)


@pytest.mark.parametrize(("rows", "columns"), [(76, 36), (4, 68)])
@pytest.mark.parametrize("name", DOWN)
def test_blocks_next_to_each_other_write_next_to_each_other(
    name: str, rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of their index they fill some rows of the output from left to right, then those below."""
    chosen = case(name, columns=columns, rows=rows, block=Block(8, 16))
    side = 32
    pieces = list(product(range(0, columns, side), range(0, rows, side)))
    grid = numba_kernel(chosen).grid
    assert grid == (-(-rows // side), -(-columns // side))
    for index, (top, left) in enumerate(pieces):
        kinds = {(index % grid[0], index // grid[0], 0): 1}
        monkeypatch.setattr(analysis, "Chosen", lambda *_, kinds=kinds: Chosen(kinds=kinds))
        traced = explain(chosen).trace
        piece = list(product(range(top, min(top + side, columns)), range(left, min(left + side, rows))))
        assert sorted(elements(traced, "out", 4)) == [row * rows + column for row, column in piece]
        assert sorted(elements(traced, "in", 4)) == sorted(column * columns + row for row, column in piece)


@pytest.mark.parametrize(
    ("columns", "rows", "chosen"),
    [
        (4096, 4096, "transpose_vectorized"),
        (4100, 4, "transpose_vectorized"),
        (4095, 4096, "transpose_unaligned"),
        (4096, 4098, "transpose_unaligned"),
    ],
)
def test_sizes_choose_between_aligned_rows_and_any(columns: int, rows: int, chosen: str) -> None:
    for name in VECTORIZED:
        program = numba_kernel(case(name, columns=columns, rows=rows))
        assert program.function.__name__ == chosen
        across, down = -(-columns // 64), -(-rows // 64)
        assert program.grid == ((down, across) if name in DOWN else (across, down))
        assert program.variant == ("unaligned" if chosen == "transpose_unaligned" else "")


@pytest.mark.parametrize(
    ("name", "dtype", "block", "reason"),
    [
        ("transposeCoarsened", "float32", Block(32, 5), "height divides its width"),
        ("transposeSwizzled", "float32", Block(24, 8), "power of two"),
        ("transposeSwizzled", "float32", Block(16, 32), "height divides its width"),
        ("transposeVectorized", "float32", Block(4, 8), "at least 8 threads across"),
        ("transposeVectorized", "float16", Block(16, 4), "for float16, a height that 8 divides"),
        ("transposeVectorized", "float64", Block(8, 32), "divides 16"),
        ("transposeDown", "float32", Block(24, 8), "power of two"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(name: str, dtype: str, block: Block, reason: str) -> None:
    chosen = case(name, dtype, block=block)
    refused = kernel_of(chosen).refusal(chosen)
    assert refused is not None
    assert reason in refused
    assert refused.endswith(f"not {block}")


def test_blocks_that_fit_have_whole_passes() -> None:
    sides = [2**power for power in range(8)]
    for dtype, x, y in product(DTYPES, sides, sides):
        chosen, wide = case("transposeVectorized", dtype, block=Block(x, y)), vector_width(dtype)
        if kernel_of(chosen).refusal(chosen) is None:
            assert (x * y % 32, wide * x % y, y % wide) == (0, 0, 0)


@pytest.mark.parametrize("n", [4096, 4095])
def test_shared_bytes_are_of_the_tiles_that_there_are(n: int) -> None:
    """Of 64 × 64 float32; without aligned rows with what that needs more."""
    for name in VECTORIZED:
        chosen = case(name, columns=n % 128 + 128)
        traced = explain(chosen).trace
        assert [array.bytes for array in traced.shared] == [kernel_of(chosen).shared_bytes(chosen)]


def accesses(text: str) -> Counter[str]:
    """Memory instructions of PTX by space and width, without types: ``ld.global.v4`` or ``st.shared``."""
    result = re.findall(r"\b(ld|st)\.(global|shared|local)((?:\.cs)?(?:\.v4)?)", text)
    return Counter(f"{kind}.{space}{width}" for kind, space, width in result)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype", "columns"),
    [
        *[(name, "float32", 4096) for name in VECTORIZED],
        *[("transposeVectorized", dtype, 4096) for dtype in ("float64", "float16")],
        ("transposePaired", "float64", 16384),
    ],
)
def test_the_compiler_makes_accesses_of_128_bits(ptx: Ptx, name: str, dtype: str, columns: int) -> None:
    """Of each step, each size of element, and columns in pairs; int32 is moved like float32."""
    text = ptx(case(name, dtype, columns))
    hint = ".cs" if name in STREAMED else ""
    result = accesses(text)
    assert {access for access in result if "global" in access} == {f"ld.global{hint}.v4", f"st.global{hint}.v4"}
    assert result["st.shared.v4"] == result[f"ld.global{hint}.v4"]
    assert not result["st.shared"]
    assert ".local" not in text


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_compiler_unrolls_the_passes_of_single_elements(ptx: Ptx, dtype: str) -> None:
    text = ptx(case("transposeCoarsened", dtype))
    result = accesses(text)
    assert set(result) == {"ld.global", "st.shared", "ld.shared", "st.global"}
    # Several loads a pass over the code: that many are in flight at once.
    assert result["ld.global"] == result["st.shared"] > 1
    assert ".local" not in text
