"""Transposes of rows that begin anywhere: what the model and the compiler say. Their results: tests/values."""

from __future__ import annotations

import re
from collections import Counter
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from campaign import CAMPAIGN
from conftest import Ptx
from ladder import DOWN, STREAMED, transpose
from programs import numba_kernel
from smembench.explain import analysis
from smembench.explain.analysis import explain
from smembench.explain.occupancy import occupancy
from smembench.explain.ptx.trace import Chosen
from smembench.kernels.intrinsics.vector import vector_width
from smembench.kernels.registry import kernel_of
from smembench.kernels.transpose.tile_geometry import vector_side
from smembench.model.case import Block, Case
from smembench.model.problem import ITEMSIZE
from smembench.toolchains.machine_code import machine_code
from traces import elements

DTYPES = ("float64", "float32", "float16")  # int32 is moved like float32
BLOCKS = (Block(16, 32), Block(16, 16))
READ = DOWN if CAMPAIGN > 1 else ("transposeDown", "transposeHalfWarp")
"""Kernels whose reads differ in more than their hints or the order of blocks."""


def case(name: str, dtype: str = "float32", columns: int = 4095, rows: int = 4095, block: Block = BLOCKS[0]) -> Case:
    return transpose(name, dtype, columns, rows, block)


@pytest.mark.parametrize(
    ("name", "rows", "columns", "loads"),
    [
        ("transposeVectorized", 4095, 4095, {"float64": 2, "float32": 4, "float16": 4}),
        ("transposeVectorized", 4097, 4095, {"float64": 2, "float32": 2, "float16": 1}),
        ("transposeVectorized", 4097, 4096, {"float64": 1, "float32": 1, "float16": 2}),
        ("transposeVectorized", 4096, 4097, {"float64": 1, "float32": 1, "float16": 1}),
        ("transposeHalfWarp", 4095, 4095, {"float64": 2, "float32": 4, "float16": 4}),
        ("transposeHalfWarp", 4097, 4096, {"float64": 2, "float32": 2, "float16": 4}),
        ("transposePaired", 4096, 4097, dict.fromkeys(DTYPES if CAMPAIGN > 1 else ("float32",), 2)),
    ],
)
def test_shifted_rows_have_the_conflicts_that_the_docstring_says(
    name: str, rows: int, columns: int, loads: dict[str, int]
) -> None:
    """A half-warp across a row has two-way conflicts at least."""
    block = Block(8, 16) if name == "transposeVectorized" else Block(16, 16)
    for dtype, expected in loads.items():
        explained = explain(case(name, dtype, columns, rows, block))
        (stores,) = (access for access in explained.shared if access.site.width == 16)
        (packed,) = (access for access in explained.shared if "packed[lane] = " in access.source)
        # Threads of a quarter-warp may have an unused vector between them.
        assert stores.degree < 1.2
        assert round(packed.degree, 1) == expected


@settings(max_examples=14)
@given(
    st.sampled_from([*product(["transposeVectorized"], DTYPES), *product(READ, ["float64"])]),
    st.integers(1, 40),
    st.integers(1, 40),
)
def test_rows_that_begin_anywhere_are_read_within_the_input_and_written_once(
    kind: tuple[str, str], rows: int, columns: int
) -> None:
    """In blocks whose tiles are smaller and larger than the matrix."""
    name, dtype = kind
    wide, size = vector_width(dtype), ITEMSIZE[dtype]
    assume(rows % wide or columns % wide)
    chosen = case(name, dtype, columns, rows, Block(8, max(wide, 4)))
    kernel, (across, down) = kernel_of(chosen), numba_kernel(chosen).grid
    with pytest.MonkeyPatch.context() as patch:
        everywhere: dict[tuple[int, ...], int] = dict.fromkeys(product(range(across), range(down), (0,)), 1)
        patch.setattr(analysis, "Chosen", lambda *_: Chosen(kinds=everywhere))
        traced = explain(chosen).trace
    every = range(rows * columns)
    assert set(elements(traced, "in", size)) <= set(every)
    assert sorted(elements(traced, "out", size)) == list(every)
    assert set(elements(traced, "shared0", size)) <= set(range(kernel.shared_bytes(chosen) // size))
    for request in traced.requests:
        assert all(address % request.site.width == 0 for address in request.addresses if address is not None)


@pytest.mark.parametrize(("rows", "down"), [(64, 1), (65, 2), (62, 1), (63, 2), (61, 1)])
def test_as_many_tiles_down_as_rows_of_the_output_may_begin_before_them(rows: int, down: int) -> None:
    """By 3 elements where its rows are odd, by 2 where they are twice an odd number, never where they are aligned."""
    assert numba_kernel(case("transposeVectorized", columns=63, rows=rows)).grid == (1, down)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*[(name, "float32") for name in DOWN], ("transposeDown", "float64"), ("transposeDown", "float16")],
)
def test_rows_that_begin_anywhere_are_moved_by_accesses_of_128_bits(ptx: Ptx, name: str, dtype: str) -> None:
    chosen, block = case(name, dtype), BLOCKS[0]
    text = ptx(chosen)
    hint = ".cs" if name in STREAMED else ""
    result = Counter(re.findall(r"\b(?:ld|st)\.(?:global|shared)(?:\.cs)?(?:\.v4)?", text))
    side = vector_width(dtype) * block.x
    passes = -(-(side + vector_width(dtype) - 1) * (block.x + 1) // (block.x * block.y))
    assert result[f"ld.global{hint}.v4"] == result["st.shared.v4"] == passes
    assert result[f"st.global{hint}.v4"] == side // block.y
    # Those of what follows the last whole vector of the input.
    assert result["ld.global"] == result["st.shared"] == 1
    assert ".local" not in text


@pytest.mark.slow
@pytest.mark.usefixtures("ptx")
@pytest.mark.parametrize(
    ("dtype", "block"),
    [
        (dtype, block)
        for dtype, block in product(DTYPES, BLOCKS)
        if CAMPAIGN > 1 or dtype == "float32" or block == BLOCKS[0]
    ],
)
def test_shifts_leave_room_for_as_many_threads_as_fill_the_memory(dtype: str, block: Block) -> None:
    """64 KiB of tiles per SM are in flight, as far as it has threads."""
    chosen = case("transposeDown", dtype, block=block)
    code, shared = machine_code(chosen, "9.0"), kernel_of(chosen).shared_bytes(chosen)
    threads, tiles = block.x * block.y, 64 * 1024 // (vector_side(chosen) ** 2 * ITEMSIZE[dtype])
    assert code is not None
    assert code.spilled_bytes == 0
    assert occupancy("9.0", threads, shared, code.registers).blocks >= min(tiles, 2048 // threads)
