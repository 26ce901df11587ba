"""What a trace says of kernels with mistakes, and that it says nothing of the package's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from inspect import getfile
from linecache import getline
from pathlib import Path

import numpy as np
import pytest

from campaign import CAMPAIGN
from conftest import Program
from programs import NUMBA
from smembench.explain import analysis
from smembench.explain.analysis import explain, numba_program
from smembench.explain.mistakes import Made, Mistake, in_shared_memory
from smembench.explain.numba_kernel import numba_kernel
from smembench.explain.ptx.program import Instruction, Place, PtxKernel
from smembench.explain.requests import AccessSite
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.model.case import Case
from smembench.studies.explain import Axes, cases
from smembench.toolchains.numba import kernel_ptx

TRACED = [kernel for kernel in NUMBA if kernel.problem != "transfer" and kernel.name != "memcpy"]
ALIKE = ("Dyn", "Pad", "16x8", "1D", "2D", "vectorized", "unrolled", "heuristic")
"""Ends of the names of kernels whose barriers stand where another's do, and whose traces take long."""
FEW_ROWS = ("oneRow", "fewRows", "fewRowsClustered")
FEW = [kernel for kernel in TRACED if CAMPAIGN > 1 or not kernel.name.endswith(ALIKE)]
MISTAKEN = Path(__file__).with_name("mistaken_kernels.py")
Site = tuple[Place, Place]


def side(kernel: Kernel) -> int:
    """Of arrays with several blocks, most with several tiles of a block; wgmmaPacked refuses 256."""
    if kernel.name == "slicedK12x6":  # tiles of 96 rows
        return 192
    one_result_per_thread = kernel.problem == "matmul" and not (kernel.default_blocks or kernel.needs)
    return 64 if one_result_per_thread else 254 if kernel.name == "wgmmaPacked" else 256


def case_of(kernel: Kernel, n: int) -> Case:
    """A case of this size; of a chain, twice as many loads as its 256 words."""
    (case, *_) = cases(kernel.name, n=256, loads=512) if kernel.problem == "latency" else cases(kernel.name, n=n)
    return case


def sized(kernel: Kernel, n: int) -> Case:
    """A case of this size; of few rows where a kernel is for those, which are two tiles at least."""
    case = case_of(kernel, n)
    return replace(case, m=32) if kernel.name in FEW_ROWS else case


def mistakes(kernel: str, n: int, block: str | None = None, dtype: str | None = None) -> tuple[Mistake, ...]:
    (case, *_) = cases(kernel, Axes(block, dtype), n=n)
    return explain(case).trace.mistakes


@pytest.fixture
def mistaken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """The mistakes of one of the kernels that have some, a line for one, with the source of its line."""
    monkeypatch.setenv("SMEMBENCH_KERNELS", str(MISTAKEN))
    source = MISTAKEN.read_text(encoding="utf-8").splitlines()

    def described(kernel: str, n: int = 64, block: str = "32x32") -> list[str]:
        return [
            f"{result.kind}: {source[result.line - 1].strip()}: {result.text}" for result in mistakes(kernel, n, block)
        ]

    return described


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (
            "beyond_the_tile",
            ("outside: tile[ty + 24, tx] = ", "thread 256 stores 4 bytes at byte 4096"),
        ),
        (
            "unordered_lanes",
            ("race: tile[ty, tx] = inp[0]", "stores an element of shared0", "(lane 1 of warp 0) loads in"),
        ),
        ("half_a_barrier", ("barrier: cuda.syncthreads()", "96 of the block's 1024 threads reach this barrier")),
        ("never_stored", ("unwritten: out[0] = tile[ty, tx]", "lane 30 of warp 0", "no thread has stored")),
        ("added_to", ("race: tile[ty, 0] = inp[", "lane 31 of warp 0", "stores in line")),
    ],
)
def test_a_mistake_is_named_with_its_line_and_thread(
    mistaken: Callable[..., list[str]], kernel: str, words: tuple[str, ...]
) -> None:
    lines = mistaken(kernel)
    assert all(word in lines[0] for word in words), lines


def test_an_index_beyond_a_global_array_is_named_where_blocks_are_ragged(mistaken: Callable[..., list[str]]) -> None:
    assert mistaken("beyond_the_input", 64) == []
    lines = mistaken("beyond_the_input", 65)
    assert all(line.startswith("outside: out[(nx - 1) * ny] = inp[y * nx + x]") for line in lines)
    assert "loads in[4225], and in has 4225 elements" in "".join(lines)


@pytest.mark.parametrize("kernel", ["ordered_lanes", "stored_again"])
def test_what_is_ordered_or_stored_again_is_no_mistake(mistaken: Callable[..., list[str]], kernel: str) -> None:
    assert mistaken(kernel) == []


def test_explain_names_mistakes_first_and_exits_1(program: Program) -> None:
    flags = ("explain", "beyond_the_tile", "-n", "64", "--block", "32x32")
    ran = program(*flags, SMEMBENCH_KERNELS=MISTAKEN)
    assert ran.returncode == 1
    assert ran.stdout.startswith(
        "mistake in mistaken_kernels.py, line 22: thread 256 stores 4 bytes at byte 4096 of shared memory"
    )
    result = json.loads(program(*flags, "--json", SMEMBENCH_KERNELS=MISTAKEN).stdout)["mistakes"]
    assert [mistake["kind"] for mistake in result] == ["outside", "outside"]


def test_each_pair_of_lines_that_races_is_named_though_another_races_at_the_same_element() -> None:
    """Lines 1 and 2 race at both elements, and line 3 at the second."""

    def made(line: int, kind: str, addresses: dict[int, int]) -> Made:
        """The address of each thread of three warps that makes the access."""
        at = np.full((1, 96), -1)
        at[0, list(addresses)] = list(addresses.values())
        return Made(AccessSite(line, "shared", kind, "shared0", 4), at, np.zeros_like(at))

    result = in_shared_memory(
        [made(3, "store", {64: 4}), made(1, "store", {0: 0, 1: 4}), made(2, "load", {32: 0, 33: 4})]
    )
    assert [(one.line, one.kind, one.text.partition("in line ")[2][0]) for one in result if one.kind == "race"] == [
        (1, "race", "2"),
        (3, "race", "1"),
    ]


@pytest.mark.parametrize("kernel", FEW, ids=lambda kernel: kernel.name)
def test_the_packages_kernels_make_no_mistakes(kernel: Kernel) -> None:
    """Half a side along k is several steps of products, but where tiles are as long along k as a line of 128 bytes."""
    case = sized(kernel, side(kernel))
    if kernel.problem == "matmul" and side(kernel) > 64 and not kernel.name.startswith(("wgmma", *FEW_ROWS)):
        case = replace(case, k=case.n // 2)
    assert explain(case).trace.mistakes == ()


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [one for one in FEW if one.problem != "matmul" or one.name in ("tiled", "streamK")])
def test_nor_at_ragged_sizes(kernel: Kernel) -> None:
    assert explain(case_of(kernel, 65 if kernel.name == "tiled" else 161)).trace.mistakes == ()


OWN = ("setRowReadRow", "setColReadCol", "parallelAccess", "serialAccess", "strided")
NO_RACE = {
    **{
        name + end: (2, "threads read what they stored themselves")
        for name in OWN
        for end in ("", "Pad", "Dyn", "DynPad")
    },
    "wgmma": (1, "it orders wgmma's reads before the TMA's next copy, no threads' accesses"),
    "wgmmaStored": (1, "it orders the end of the TMA's reads before lanes store"),
    "wgmmaPacked": (3, "likewise, once within a warp; and packed elements in global memory before they are copied"),
    "splitK": (3, "they order partial sums in global memory, and a block has one tile here, which no other follows"),
    "streamK": (2, "they order partial sums in global memory and a flag"),
}
"""Kernels of which barriers can be removed without a race between threads in shared memory: how many, and why."""


def barriers(case: Case, kernel: PtxKernel) -> dict[Site, list[Instruction]]:
    """A kernel's barriers by their places."""
    source = getfile(numba_program(registry.kernel_of(case), case).function)
    result: dict[Site, list[Instruction]] = {}
    for item in kernel.code:
        hint = "scheduling_barrier" in getline(source, item.called_from.line)  # which orders no accesses
        if item.root in ("bar", "barrier") and not hint:
            result.setdefault((item.place, item.called_from), []).append(item)
    return result


def without_one(monkeypatch: pytest.MonkeyPatch, case: Case) -> dict[Site, bool]:
    """By the place of a barrier, whether a trace of a kernel without it shows a mistake."""
    ptx = kernel_ptx(case, numba_program(registry.kernel_of(case), case), analysis.DEFAULT_CAPABILITY)

    def mistaken(place: Site) -> bool:
        def kernel(ptx: str) -> PtxKernel:
            made = numba_kernel(ptx)
            for item in barriers(case, made)[place]:
                item.opcode, item.parts, item.operands = "fence", ("fence",), []
            return made

        with monkeypatch.context() as context:
            context.setattr(analysis, "numba_kernel", kernel)
            return bool(explain(case).trace.mistakes)

    return {place: mistaken(place) for place in barriers(case, numba_kernel(ptx))}


@pytest.mark.slow
@pytest.mark.parametrize("kernel", FEW, ids=lambda kernel: kernel.name)
def test_a_kernel_without_one_of_its_barriers_is_caught(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> None:
    """Barriers of a block, of a cluster and of a warp take part, and so does the one before a barrier in shared memory.

    Waits take no part: for a phase of such a barrier, for asynchronous copies, products and stores, for flags of other
    blocks. Half the side is enough for products: their loops along k have several steps then, too.
    """
    case = sized(kernel, side(kernel) // 4 * 2 if kernel.problem == "matmul" and side(kernel) > 64 else side(kernel))
    missed = [place for place, mistaken in without_one(monkeypatch, case).items() if not mistaken]
    expected, _ = NO_RACE.get(kernel.name, (0, ""))
    assert len(missed) == expected, missed
