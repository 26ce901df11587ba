"""The sum: inputs whose partial sums are exact, what a check sees, traces, machine code, and the way to the driver."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import programs
from conftest import QUICK, Measured, Program, records
from fake_driver.host_code import compile_for_host, port
from fake_driver.process import FEW, FakeDriver, ended
from programs import case_of, cuda_kernel, numba_kernel
from smembench.explain.analysis import Explanation, explain
from smembench.explain.banks import conflict_degree
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS, Verification
from smembench.kernels.reduction.cuda.sum_persistent import TURNS
from smembench.kernels.reduction.problem import EXACT_BITS, READ, SUM, most_quarter
from smembench.kernels.reduction.threads import VECTORS
from smembench.model.case import Block, Case
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.studies.ladder.climb import steps
from smembench.toolchains.machine_code import machine_code
from smembench.views.sections import sections
from traces import elements

Array = NDArray[Any]
PROBLEM = PROBLEMS["reduction"]
THREADS = PROBLEM.default_blocks[0].x
PER_THREAD = {
    "sumDivergent": 1,
    "sumInterleaved": 1,
    "sumSequential": 1,
    "sumFirstAdd": 2,
    "sumUnrolled": 2,
    "sumCoarsened": 8,
    "sumShuffled": 8,
    "sumVectorized": 16,
    "sumPersistent": 16,
}
"""Elements of float32 per thread, by step."""
LAST = ("sumVectorized", "sumPersistent")


def sum_of(n: int, kernel: str = "sumSequential", dtype: str = "float32", block: Block | None = None) -> Case:
    return case_of(cuda_kernel("reduction", kernel), 1, n, dtype=dtype, block=block)


def explained(kernel: str, **case: Any) -> Explanation:
    return explain(sum_of(2**22, kernel, **case), "9.0")


def judge(case: Case, output: Callable[[Array], Any], computes: str = SUM) -> Verification:
    """Judge what is made of the input, in the case's dtype."""
    inputs = PROBLEM.inputs(case, seed=1)
    return PROBLEM.check(case, PROBLEM.reference(case, inputs, computes), np.full(1, output(*inputs), case.dtype))


@given(n=st.integers(1, 1000), dtype=st.sampled_from(PROBLEM.dtypes), random=st.randoms(use_true_random=False))
def test_every_order_of_additions_gives_the_exact_sum(n: int, dtype: str, random: Any) -> None:
    """Any two partial sums are added, until one is left."""
    case = sum_of(n, dtype=dtype)
    inputs = PROBLEM.inputs(case, seed=random.randrange(2**32))
    sums = list(inputs[0])
    while len(sums) > 1:
        sums.append(sums.pop(random.randrange(len(sums))) + sums.pop())
    assert float(sums[0]) == PROBLEM.reference(case, inputs, SUM) == math.fsum(inputs[0])
    assert PROBLEM.check(case, PROBLEM.reference(case, inputs, SUM), np.array(sums)).passed


@given(n=st.integers(1, 2**32 - 1), dtype=st.sampled_from(PROBLEM.dtypes))
def test_sums_of_the_largest_magnitudes_stay_exact_with_ten_deviations(n: int, dtype: str) -> None:
    most = 4 * most_quarter(sum_of(n, dtype=dtype))
    assert most >= 4
    assert 10 * most * math.sqrt(n) <= 2 ** EXACT_BITS[dtype]


@pytest.mark.parametrize("dtype", PROBLEM.dtypes)
def test_one_element_is_odd_and_none_is_zero(dtype: str) -> None:
    (inputs,) = PROBLEM.inputs(sum_of(5000, dtype=dtype), seed=1)
    assert sorted(set(inputs % 4)) == [0, 1]
    assert list(inputs[inputs % 4 == 1]) == [1]
    assert (inputs != 0).all()
    assert np.abs(inputs.mean()) < np.abs(inputs).mean() / 10


WRONG: dict[str, Callable[[Array], Any]] = {
    "an element left out": lambda line: line[:-1].sum(),
    "an element twice": lambda line: line.sum() + line[17],
    "in half the digits": lambda line: line.astype(f"f{line.itemsize // 2}").sum(dtype=line.dtype),
    "one block only": lambda line: line[:256].sum(),
    "on top of another sum": lambda line: 2 * line.sum(),
    "nothing": lambda line: 0,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_sum_fails(wrong: Callable[[Array], Any], dtype: str) -> None:
    verdict = judge(sum_of(4097, dtype=dtype), lambda line: np.nan_to_num(wrong(line)))
    assert not verdict.passed
    assert verdict.error is not None
    assert verdict.error > 0
    assert "the result is" in verdict.detail


def test_poison_fails_and_has_no_error_where_it_is_no_number() -> None:
    assert judge(sum_of(100), lambda line: np.nan).error is None
    assert not judge(sum_of(100, dtype="int32"), lambda line: -1).passed


def test_reading_is_proved_by_the_odd_element_alone() -> None:
    assert judge(sum_of(100), lambda line: 1, READ).passed
    assert not judge(sum_of(100), lambda line: line.sum() + 4, READ).passed


def test_bytes_and_additions() -> None:
    counts = [(PROBLEM.bytes_moved(case), PROBLEM.flops(case)) for case in (sum_of(100), sum_of(100, dtype="int32"))]
    assert counts == [(404, 99), (404, 0)]


@pytest.mark.parametrize("beyond", [0, 1, -1, -31])
@pytest.mark.parametrize(("kernel", "per_thread"), [*PER_THREAD.items(), ("readGmem", 16)])
def test_every_element_is_read_once(kernel: str, per_thread: int, beyond: int) -> None:
    """By one block and a little of the next, and by almost two, which are both traced."""
    span = per_thread * math.prod(numba_kernel(sum_of(1, kernel, block=Block(64, 1))).block)
    for blocks in (1, 2):
        case = sum_of(blocks * span + min(beyond, (2 - blocks) * beyond), kernel, block=Block(64, 1))
        assert math.prod(numba_kernel(case).grid) <= 2
        result = elements(explain(case).trace, "in", 4)
        assert sorted(result) == list(range(case.n))


@pytest.mark.parametrize(
    ("kernel", "threads"),
    [*product(PER_THREAD, (THREADS,)), *product(("sumInterleaved", "sumPersistent"), (64, 1024))],
)
def test_the_interleaved_tree_alone_has_conflicts_and_a_block_adds_to_the_output_once(
    kernel: str, threads: int
) -> None:
    result = explained(kernel, block=Block(threads, 1))
    worst = max(
        conflict_degree(access.worst.addresses, access.site.width, access.site.kind) for access in result.shared
    )
    assert worst == (threads / 32 if kernel == "sumInterleaved" else 1)
    traffic = {(access.array, access.kind): access for access in result.traffic}
    assert set(traffic) == {("in", "load"), ("out", "atomic")}
    assert traffic["out", "atomic"].per_element == 2**22 / (threads * PER_THREAD[kernel])
    assert (traffic["in", "load"].per_element, traffic["in", "load"].bytes) == (1, 4 * 2**22)


@pytest.mark.parametrize("dtype", PROBLEM.dtypes)
@pytest.mark.parametrize("kernel", [*LAST, "readGmem"])
def test_vectors_are_in_flight_together_in_full_occupancy(ptx: Any, kernel: str, dtype: str) -> None:
    text, code = ptx(sum_of(2**22, kernel, dtype)), machine_code(sum_of(2**22, kernel, dtype), "9.0")
    bits = "f64" if dtype == "float64" else "(?:b|u|f)32"
    assert len(re.findall(rf"ld\.global\.v(?:2|4)\.{bits}", text)) == VECTORS
    assert len(re.findall(r"ld\.global", text)) == VECTORS + 1  # and what whole vectors leave over
    assert code is not None
    assert (code.spilled_bytes, code.registers <= 32) == (0, True)


@pytest.mark.parametrize("dtype", PROBLEM.dtypes)
def test_the_output_is_added_to_without_waiting_for_it(ptx: Any, dtype: str) -> None:
    """What an atomic returns is not used, so the instruction has no result that a thread would wait for."""
    text = ptx(sum_of(2**22, "sumPersistent", dtype))
    assert len(re.findall(r"(?:red|atom)[.\w]*\.add", text)) == 1


def test_a_persistent_grid_has_a_few_turns_of_the_blocks_that_run_at_once_or_fewer() -> None:
    grids = [numba_kernel(sum_of(n, "sumPersistent")).on(132).grid for n in (1, 2**20, 2**28)]
    assert grids == [(1, 1), (2**20 // (16 * THREADS), 1), (TURNS * 2048 // THREADS * 132, 1)]


def test_a_table_names_the_ceiling_and_says_what_the_steps_gain(measured: Measured) -> None:
    times = {"readGmem": 0.9, "sumDivergent": 8.0, "sumInterleaved": 4.0, "sumSequential": 2.0, "sumPersistent": 1.0}
    blocks = {"readGmem": None}
    done = [
        measured(kernel, [ms] * 30, problem="reduction", n=2**28, block=blocks.get(kernel, Block(256, 1)))
        for kernel, ms in times.items()
    ]
    (table,) = sections(Run.of(Description(), done))
    assert "% of\nreadGmem" in [column.heading for column in table.columns]
    for words in (
        "bank conflicts the sum is 2.000 times as fast",
        "8.000 times (±0.01 %) as fast as sumDivergent and reaches 90 % of readGmem",
    ):
        assert words in table.sentence


@pytest.mark.parametrize(
    ("kernel", "block", "least"),
    [
        ("sumDivergent", Block(24, 1), ""),
        ("sumUnrolled", Block(32, 1), ", at least 64"),
        ("sumPersistent", Block(16, 1), ", at least 32"),
    ],
)
def test_blocks_that_cannot_be_halved_are_refused(kernel: str, block: Block, least: str) -> None:
    case = sum_of(100, kernel, block=block)
    refused = f"{kernel} needs a power of two of threads per block{least}, not {block}"
    assert registry.kernel_of(case).refusal(case) == refused


@pytest.mark.slow
def test_the_whole_way_to_the_driver(fake_driver: FakeDriver, tmp_path: Path) -> None:
    """Of a kernel and its port: the output of every launch, timed ones included, begins with zeros."""
    kernels = compile_for_host([port(replace(sum_of(1000), compiler="nvrtc"))], tmp_path)
    command = ["smembench", "reduction", "--device", "cuda", *FEW, "--kernel", "sumSequential", "--n", "100000"]
    out, _ = ended(fake_driver(*command, "--compiler", "numba,nvrtc", "--csv", "-", kernels=kernels), 1)
    result = {(row["kernel"], row["compiler"]): row for row in records(out)}
    assert {key for key, row in result.items() if row["status"] == "ok"} == {
        ("sumSequential", "numba"),
        ("sumSequential", "nvrtc"),
    }
    assert result["readGmem", "numba"]["status"] == "wrong_result"  # it has no host form, and does nothing


@pytest.mark.slow
def test_its_command_on_the_cpu(program: Program) -> None:
    done = program(
        "reduction", "--n", "1,1000,65537", "--dtype", "float32,int32", "--device", "cpu", *QUICK, "--csv", "-"
    )
    assert done.returncode == 0, done.stderr
    result = records(done.stdout)
    assert {(row["kernel"], row["status"], row["max_error"]) for row in result} == {("sumLoop", "ok", "0.0")}
    assert sorted(int(row["n"]) for row in result) == [1, 1, 1000, 1000, 65537, 65537]


def test_its_steps_and_candidates_follow_from_its_folder(program: Program) -> None:
    planned = programs.planned({"problem": "reduction", "device": "cuda", "peers": True})
    names = ["readGmem", "sumLoop", *PER_THREAD, "cupy", "torch"]
    assert [item.case.kernel for item in planned] == names
    assert [kernel.name for kernel in steps("reduction", "cuda")] == list(PER_THREAD)
    tuned = program("tune", "reduction", "--n", "100000", "--device", "cpu", "--dry-run")
    assert tuned.stdout.split() == ["reduction/sumLoop/cpu/numba/float32/1x100000/warm"]
    result = program("tune", "reduction", "--kernel", "sumShuffled", "--device", "cuda", "--dry-run").stdout.split()
    assert [name.split("/")[-2] for name in result] == [f"b{threads}x1" for threads in (64, 128, 256, 512, 1024)]


@pytest.mark.parametrize(("device", "code"), [("cpu", 2), ("auto", 4)])
def test_its_ladder_stands_on_gpus_alone(program: Program, device: str, code: int) -> None:
    done = program("ladder", "reduction", "--n", "1000", "--device", device, "--dry-run")
    assert (done.returncode, done.stdout) == (code, "")
    assert "only on a GPU" in done.stderr
