"""The products of the ladder: what the compiler makes of them, in PTX and in machine code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import pytest

from conftest import Ptx
from ladder import PIPELINED, SERPENTINE, TILED
from ladder import matmul as case
from programs import cuda_kernel, numba_kernel
from smembench.kernels.matmul.ragged import AT_ONCE, SIDE
from smembench.model.case import Block, Case
from smembench.model.problem import ITEMSIZE
from smembench.toolchains import numba
from smembench.toolchains.machine_code import instructions as machine_instructions
from smembench.toolchains.machine_code import opcodes, parse
from smembench.toolchains.register_bank_conflicts import main_loop

pytestmark = pytest.mark.slow
WRITTEN_OUT = ("unrolled", *PIPELINED)


@pytest.fixture(scope="module")
def ptx(by_nvvm: Callable[[Case], bytes]) -> Ptx:
    """What ``explain`` traces, which is kept: other tests link most of these variants, too."""
    return lambda chosen: numba.kernel_ptx(chosen, numba_kernel(chosen), "9.0")


def instructions(text: str) -> Counter[str]:
    """Some instructions of PTX without types, and those of several elements as ``ld.global.v``."""
    return Counter(re.findall(r"\b((?:ld|st)\.(?:global|shared)(?:\.v)?|fma|bar|call)[.24\s]", text))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*[(name, "float32") for name in TILED], ("vectorized", "float64")],
)
def test_the_compiler_keeps_results_in_registers(ptx: Ptx, name: str, dtype: str) -> None:
    text = ptx(case(name, dtype))
    result = instructions(text)
    across, down = cuda_kernel("matmul", name).results
    ahead = name in PIPELINED
    vector = 16 // ITEMSIZE[dtype]
    steps = 16 if ahead else 8
    results = down * across
    assert not re.search(r"\.local|\bred\.", text)
    # Of a tile 16 deep a thread copies 8 elements of A and two vectors of B.
    copied = [text.count(f"cp.async.{cache}.shared.global") for cache in ("ca", "cg")]
    assert copied == ([8, 2] if name == "streamK" else [0, 0])
    assert not result["call"] + result["ld.global"] + result["ld.shared"] + result["st.global"]
    assert result["st.global.v"] == results // vector
    if name in WRITTEN_OUT:
        assert result["fma"] == results * steps
        # Those that load ahead do so once before the loop.
        assert result["ld.shared.v"] == (down + across) // vector * (steps + ahead)
        # Sums are handed over between two more barriers, and loads of vectors held back by one of a warp.
        assert result["bar"] == 2 + (2 if name == "streamK" else name in SERPENTINE)

        # Between the loads for the next tile and its stores lie all multiplications, or copies lie between those.
        loop = text.partition("bar.sync")[2].partition("bar.sync")[0]
        order = groupby(re.findall(r"\b(ld\.global|fma\.rn|st\.shared|cp\.async\.c[ag]|cp\.async\.wait)", loop))
        vectors, elements = ["fma.rn", "cp.async.cg"], ["fma.rn", "cp.async.ca"] * 4
        copying = [*vectors, *elements, "fma.rn", "cp.async.wait"]
        expected = copying if name == "streamK" else ["ld.global", "fma.rn", "st.shared"]
        assert [kind for kind, _ in order] == expected
    if name in ("unrolled", *SERPENTINE):
        check_machine_code(name)


def check_machine_code(name: str) -> None:
    """Loads of the next tiles leave before most multiplications in machine code too.

    In a branch of their own ptxas puts them behind all but two, and each tile waits for global memory.
    """
    load, multiply_add = 0x981, 0x223  # LDG and FFMA for compute capability 9.0
    log, code = numba.TOOLCHAIN.machine_code(case(name), numba_kernel(case(name)), "9.0")
    result, parsed = opcodes(code), parse(log, code)
    assert parsed is not None
    assert parsed.spilled_bytes == 0
    last_load = max(place for place, opcode in enumerate(result) if opcode == load)
    assert result[:last_load].count(multiply_add) <= 0.75 * result.count(multiply_add)
    loop = main_loop(machine_instructions(code))
    assert loop is not None
    assert loop.multiply_adds == result.count(multiply_add)
    assert loop.bound > (0.8 if name in SERPENTINE else 0.6)


def test_three_slices_keep_12_by_6_results_in_registers(ptx: Ptx) -> None:
    text = ptx(case("slicedK12x6"))
    result = instructions(text)
    # Vectors of A's fragment, pairs of B's; six elements of A and of B for the first tile, and as many for the next.
    assert result["ld.shared.v"] == 8 * (12 // 4 + 6 // 2)
    assert (result["fma"], result["ld.global"], result["st.global"]) == (8 * 72, 24, 72)
    assert ".local" not in text
    check_machine_code("slicedK12x6")


@pytest.mark.parametrize("name", ["serpentine", "streamK"])
def test_what_is_left_over_stays_in_registers(name: str, ptx: Ptx) -> None:
    text = ptx(case(name, n=3073))
    assert ".local" not in text
    assert "ld.shared.f32" in text
    # Between two branches are several steps along k of a piece, those within k or the rest: loads can come first.
    between = [(part.count("ld.global"), part.count("fma.rn")) for part in re.split(r"\bbra\b|\n\$L", text)]
    assert between.count((AT_ONCE * (SIDE + 1), AT_ONCE * SIDE)) == 2
    # Where rows are not aligned streamK's elements pass the registers, and sums are added in memory.
    copies, additions = text.count("cp.async.ca.shared.global"), "red.relaxed.gpu.global.add.f32" in text
    assert (copies, additions) == ((16, True) if name == "streamK" else (0, False))


def test_the_compiler_loads_single_elements_where_rows_are_not_aligned(ptx: Ptx) -> None:
    result = instructions(ptx(case("vectorized", n=4097)))
    assert not result["ld.global.v"] + result["st.global.v"]
    assert result["ld.global"]
    assert result["st.global"] == 64
    assert result["ld.shared.v"]


@pytest.mark.parametrize("block", [Block(16, 16), Block(16, 8), Block(8, 4)])
def test_tiles_that_blocks_share_stay_in_registers(block: Block) -> None:
    result = case("splitK", n=512, block=block)
    log, code = numba.TOOLCHAIN.machine_code(result, numba_kernel(result), "9.0")
    parsed = parse(log, code)
    assert "0 bytes stack frame" in log
    assert parsed is not None
    assert parsed.spilled_bytes == 0
    slices = 256 // (block.x * block.y)
    assert opcodes(code).count(0x223) == 64 * (16 if slices == 2 else 32) // slices  # one loop


@pytest.mark.parametrize("name", ["serpentine", "streamK"])
def test_sides_smaller_than_a_tile_compile(ptx: Ptx, name: str) -> None:
    """Nothing is copied asynchronously then; every load is predicated."""
    assert "cp.async." not in ptx(replace(case(name, "float32"), m=64, n=64, k=64)).replace("cp.async.wait", "")
