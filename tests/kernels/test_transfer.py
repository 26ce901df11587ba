"""Copies between host and device, and the round trip of add-one: sizes, counts, checks and sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conftest import Rows
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.device import Limits
from smembench.model.errors import UsageError
from smembench.run.config import from_flags, from_toml
from smembench.run.plan import Plan
from smembench.store.run import Run
from smembench.views.sentences import sentence

ROOT = Path(__file__).parents[2]
KIB = 1024
LIMITS = {"cuda:0": Limits(free_bytes=2**34), "cpu": Limits(free_bytes=2**34)}
RESOLVED = {"auto": "cuda:0"}


def case_of(problem: str, n: int) -> Case:
    return Case(problem, "any", "cuda:0", "int32", 1, n)


def test_sizes_are_bytes_from_a_kilobyte_to_a_gigabyte() -> None:
    problem = PROBLEMS["transfer"]
    assert [4 * shape.n for shape in problem.shapes({})] == [KIB, 32 * KIB, KIB**2, 32 * KIB**2, KIB**3]
    assert [shape.n for shape in problem.shapes({"bytes": (4, 400)})] == [1, 100]
    with pytest.raises(UsageError, match=r"bytes 1023: .*multiple of 4"):
        problem.shapes({"bytes": (1024, 1023)})


@pytest.mark.parametrize(
    ("n", "size"), [(1, "4 bytes"), (250, "1000 bytes"), (256, "1 KiB"), (384, "1536 bytes"), (2**28, "1 GiB")]
)
def test_a_size_is_written_exactly(n: int, size: str) -> None:
    assert PROBLEMS["transfer"].texts.size(case_of("transfer", n)) == size


@pytest.mark.parametrize(("name", "crossings"), [("transfer", 1), ("roundtrip", 2)])
def test_every_element_crosses_the_link_and_is_checked(name: str, crossings: int) -> None:
    problem, case = PROBLEMS[name], case_of(name, 100)
    assert problem.bytes_moved(case) == 400 * crossings
    inputs = problem.inputs(case, seed=1)
    right = inputs[0] + (name == "roundtrip")
    reference = problem.reference(case, inputs, "")
    assert problem.check(case, reference, right).passed
    for wrong in (right + 1, np.roll(right, 1), np.where(np.arange(100) == 99, -1, right).astype(np.int32)):
        assert not problem.check(case, reference, wrong).passed


def test_adding_one_neither_overflows_nor_makes_the_poison() -> None:
    problem, case = PROBLEMS["roundtrip"], case_of("roundtrip", 10_000)
    expected = problem.reference(case, (np.array([0, 2**31 - 2], np.int32),), "")
    assert expected.tolist() == [1, 2**31 - 1]
    assert problem.inputs(case, seed=1)[0].max() <= 2**31 - 2


@pytest.mark.parametrize("name", ["transfer", "roundtrip"])
def test_there_is_no_cold_copy(name: str) -> None:
    config = from_flags({"sweep": [{"problem": name, "cache": "cold"}]})
    with pytest.raises(UsageError, match="cache cold: copies are timed warm only; leave cache out"):
        list(Plan.of(config, RESOLVED).cases(LIMITS))


def test_the_plan_has_every_copy_at_every_size_and_the_loop_beside_the_round_trips() -> None:
    config = from_flags({"sweep": [{"problem": "transfer", "bytes": "1024,4096"}, {"problem": "roundtrip"}]})
    cases = [item.case for item in Plan.of(config, RESOLVED).cases(LIMITS)]
    copies = ["hostCopy", "h2dPageable", "h2dPinned", "d2hPageable", "d2hPinned"]
    assert [(case.kernel, case.n) for case in cases[:10]] == [(name, n) for n in (256, 1024) for name in copies]
    assert [(case.kernel, case.device, case.n) for case in cases[10:]] == [
        ("addOne", "cpu", 100_000),
        ("addOnePageable", "cuda:0", 100_000),
        ("addOnePinned", "cuda:0", 100_000),
        ("addOneDevice", "cuda:0", 100_000),
    ]


def test_the_config_of_the_concepts_has_the_documents_array_and_a_gigabyte() -> None:
    config = from_toml(ROOT / "configs/concepts.toml")
    cases = [item.case for item in Plan.of(config, RESOLVED).cases(LIMITS)]
    assert {case.kernel for case in cases if case.problem == "constant"} == set(registry.names("constant"))
    assert {case.n for case in cases if case.problem == "transfer"} == {2**exponent for exponent in range(8, 29, 2)}
    assert 100_000 in {case.n for case in cases if case.kernel == "addOne"}


@pytest.mark.parametrize(
    ("problem", "times", "phrases"),
    [
        ("transfer", {"h2dPageable": 4.0, "h2dPinned": 1.0}, ["page-locked", "4.000 times"]),
        ("transfer", {"d2hPageable": 2.0, "d2hPinned": 2.0}, ["page-locked", "as fast as", "within 0."]),
        (
            "roundtrip",
            {"addOne": 1.0, "addOnePageable": 4.0, "addOnePinned": 0.5},
            ["it takes 4.000 times", "2.000 times"],
        ),
        ("roundtrip", {"addOne": 1.0, "addOneDevice": 0.25}, ["ithout copies addOneDevice is 4.000 times"]),
        ("constant", {"globalUniform": 2.0, "constantUniform": 1.0}, ["2.000 times", "globalUniform"]),
        (
            "constant",
            {"constantUniform": 1.0, "constantDiverging": 5.0},
            ["it takes 5.000 times", "constantUniform"],
        ),
        ("transfer", {"h2dPinned": 1.0}, []),
        ("roundtrip", {"addOnePageable": 4.0, "addOnePinned": 0.5}, []),
        ("constant", {"globalUniform": 2.0}, []),
    ],
)
def test_the_sentence_compares_what_the_problem_is_about(
    rows: Rows, problem: str, times: dict[str, float], phrases: list[str]
) -> None:
    result = rows({kernel: [ms] * 5 for kernel, ms in times.items()}, problem=problem, block=None)
    on_devices = [replace(row, device="cpu") if row.kernel == "addOne" else row for row in result]
    words = sentence(Run(on_devices))
    assert bool(words) == bool(phrases)
    assert [entry for entry in phrases if entry not in words] == []
