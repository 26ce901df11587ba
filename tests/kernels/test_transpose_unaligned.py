"""Transposes of rows that begin anywhere: what the model and the compiler say. Their results: tests/simulator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from programs import numba_kernel
from smembench.explain import trace as tracing
from smembench.explain.analysis import explain
from smembench.explain.occupancy import occupancy
from smembench.explain.trace import _GLOBAL_GAP, trace
from smembench.kernels import registry
from smembench.kernels.intrinsics.vector import vector_width
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.transpose.tile_geometry import resident
from smembench.model.case import Block, Case
from smembench.model.problem import ITEMSIZE
from smembench.toolchains.machine_code import machine_code

Ptx = Callable[[Case], str]

DTYPES = PROBLEMS["transpose"].dtypes
COMPILED = [dtype for dtype in DTYPES if dtype != "int32"]
"""Of two that are moved alike one is compiled."""
HALF_WARPS = ("transposeHalfWarp", "transposePaired")
STREAMED = ("transposeStreamed", *HALF_WARPS)
DOWN = ("transposeDown", *STREAMED)
SEVERAL_TILES = ("transposePipelined", "transposeAsync", "transposePersistent")
BLOCKS = (Block(16, 32), Block(16, 16))


def kernel(name: str) -> registry.Kernel:
    found = registry.find("transpose", name, "cuda")
    assert found is not None
    return found


def case(name: str, dtype: str = "float32", n: int = 4095, m: int | None = None, block: Block = BLOCKS[0]) -> Case:
    return Case("transpose", name, "cuda:0", dtype, m or n, n, None, block, 0)


@pytest.mark.parametrize(
    ("rows", "columns", "loads"),
    [
        (4095, 4095, {"float64": 2, "float32": 4, "int32": 4, "float16": 4}),
        (4097, 4095, {"float64": 2, "float32": 2, "int32": 2, "float16": 1}),
        (4097, 4096, {"float64": 1, "float32": 1, "int32": 1, "float16": 2}),
        (4096, 4097, {"float64": 1, "float32": 1, "int32": 1, "float16": 1}),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_shifted_rows_have_the_conflicts_that_the_docstring_says(
    dtype: str, rows: int, columns: int, loads: dict[str, int]
) -> None:
    explained = explain(case("transposeVectorized", dtype, columns, rows, Block(8, 16)))
    (stores,) = (access for access in explained.shared if access.site.width == 16)
    (packed,) = (access for access in explained.shared if "packed[lane] = " in access.source)
    # Threads of a quarter-warp may have an unused vector between them.
    assert stores.degree < 1.2
    assert round(packed.degree, 1) == loads[dtype]


@pytest.mark.parametrize(
    ("name", "rows", "columns", "float32", "float16"),
    [
        ("transposeHalfWarp", 4095, 4095, 4, 4),
        ("transposeHalfWarp", 4097, 4095, 2, 2),
        ("transposeHalfWarp", 4097, 4096, 2, 4),
        ("transposePaired", 4096, 4097, 2, 2),
    ],
)
def test_half_warps_have_two_way_conflicts_at_least(
    name: str, rows: int, columns: int, float32: int, float16: int
) -> None:
    for dtype, loads in {"float64": 2, "float32": float32, "float16": float16}.items():
        explained = explain(case(name, dtype, columns, rows, Block(16, 16)))
        (packed,) = (access for access in explained.shared if "packed[lane] = " in access.source)
        assert round(packed.degree, 1) == loads


@settings(max_examples=30)
@given(
    st.sampled_from(DTYPES),
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from(["transposeVectorized", *DOWN]),
)
def test_rows_that_begin_anywhere_are_read_within_the_input_and_written_once(
    dtype: str, rows: int, columns: int, name: str
) -> None:
    """In blocks whose tiles are smaller and larger than the matrix."""
    wide, size = vector_width(dtype), ITEMSIZE[dtype]
    assume(rows % wide or columns % wide)
    chosen = case(name, dtype, columns, rows, Block(8, max(wide, 4)))
    with pytest.MonkeyPatch.context() as patch:
        across, down = numba_kernel(kernel(name), chosen).grid
        everywhere = dict.fromkeys(product(range(across), range(down)), 1)
        patch.setattr(tracing, "kinds_of_blocks", lambda *_: everywhere)
        traced = trace(kernel(name), chosen)
    ends = {"shared0": kernel(name).shared_bytes(chosen), "in": rows * columns * size, "out": rows * columns * size}
    written: list[int] = []
    for request in traced.requests:
        place = request.site
        for address in (address for address in request.addresses if address is not None):
            first = address % _GLOBAL_GAP
            assert first % place.width == 0
            assert 0 <= first <= ends[place.array] - place.width
            if place.array == "out":
                written += range(first // size, (first + place.width) // size)
    assert sorted(written) == list(range(rows * columns))


@pytest.mark.parametrize(("rows", "down"), [(64, 1), (65, 2), (62, 1), (63, 2), (61, 1)])
def test_as_many_tiles_down_as_rows_of_the_output_may_begin_before_them(rows: int, down: int) -> None:
    """By 3 elements where its rows are odd, by 2 where they are twice an odd number, never where they are aligned."""
    program = numba_kernel(kernel("transposeVectorized"), case("transposeVectorized", n=63, m=rows))
    assert program.grid == (1, down)


@pytest.mark.parametrize("name", SEVERAL_TILES)
def test_without_aligned_rows_a_block_has_one_tile(name: str) -> None:
    """In the order of transposeDown, whose program it is."""
    program, down = (numba_kernel(kernel(each), case(each)) for each in (name, "transposeDown"))
    assert (program.function.__name__, program.variant, program.grid) == ("transpose_unaligned", "unaligned", (65, 64))
    assert replace(program, function=down.function) == down


@pytest.mark.slow
@pytest.mark.parametrize("dtype", COMPILED)
@pytest.mark.parametrize("name", DOWN)
def test_rows_that_begin_anywhere_are_moved_by_accesses_of_128_bits(ptx: Ptx, name: str, dtype: str) -> None:
    block = BLOCKS[0]
    text = ptx(case(name, dtype, block=block))
    hint = ".cs" if name in STREAMED else ""
    found = Counter(re.findall(r"\b(?:ld|st)\.(?:global|shared)(?:\.cs)?(?:\.v4)?", text))
    side = vector_width(dtype) * block.x
    passes = -(-(side + vector_width(dtype) - 1) * (block.x + 1) // (block.x * block.y))
    assert found[f"ld.global{hint}.v4"] == found["st.shared.v4"] == passes
    assert found[f"st.global{hint}.v4"] == side // block.y
    # Those of what follows the last whole vector of the input.
    assert found["ld.global"] == found["st.shared"] == 1
    assert ".local" not in text


@pytest.mark.slow
@pytest.mark.parametrize("dtype", COMPILED)
def test_shifts_leave_room_for_as_many_threads_as_fill_the_memory(dtype: str) -> None:
    for block in BLOCKS:
        chosen = case("transposeDown", dtype, block=block)
        code = machine_code(chosen, "9.0")
        if code is None:
            pytest.skip("no machine code without NVIDIA's compiler libraries")
        assert code.spilled_bytes == 0
        shared = kernel("transposeDown").shared_bytes(chosen)
        assert occupancy("9.0", block.x * block.y, shared, code.registers).blocks >= resident(chosen)
