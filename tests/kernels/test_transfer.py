"""Copies between host and device, and the round trip of add-one: sizes, counts, checks and sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from smembench.explain.analysis import explain
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.device import Limits
from smembench.model.errors import UsageError
from smembench.run.config import from_flags, from_toml
from smembench.run.plan import plan
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.sections import sections
from smembench.views.sentences import sentence

Rows = Callable[..., list[Row]]

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
    with pytest.raises(UsageError, match="bytes 1023: not a whole number of int32 elements; use a multiple of 4"):
        problem.shapes({"bytes": (1024, 1023)})


@pytest.mark.parametrize(
    ("n", "size"), [(1, "4 bytes"), (250, "1000 bytes"), (256, "1 KiB"), (384, "1536 bytes"), (2**28, "1 GiB")]
)
def test_a_size_is_written_exactly(n: int, size: str) -> None:
    assert PROBLEMS["transfer"].size(case_of("transfer", n)) == size


def test_a_copy_crosses_the_link_once_and_a_round_trip_twice() -> None:
    assert PROBLEMS["transfer"].bytes_moved(case_of("transfer", 100)) == 400
    assert PROBLEMS["roundtrip"].bytes_moved(case_of("roundtrip", 100)) == 800


@pytest.mark.parametrize("name", ["transfer", "roundtrip"])
def test_every_element_is_checked(name: str) -> None:
    problem, case = PROBLEMS[name], case_of(name, 100)
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
        plan(config, LIMITS, RESOLVED)


def test_element_types_default_to_the_problems_first() -> None:
    config = from_flags({"sweep": [{"problem": "transfer"}, {"problem": "constant"}]})
    assert [sweep.dtype for sweep in config.sweep] == [("int32",), ("float32",)]
    with pytest.raises(UsageError, match="--dtype 'float32': no such element type for transfer"):
        from_flags({"sweep": [{"problem": "transfer", "dtype": "float32"}]})


def test_the_plan_has_every_copy_at_every_size_and_the_loop_beside_the_round_trips() -> None:
    config = from_flags({"sweep": [{"problem": "transfer", "bytes": "1024,4096"}, {"problem": "roundtrip"}]})
    cases = [item.case for item in plan(config, LIMITS, RESOLVED)]
    copies = ["hostCopy", "h2dPageable", "h2dPinned", "d2hPageable", "d2hPinned"]
    assert [(case.kernel, case.n) for case in cases[:10]] == [(name, n) for n in (256, 1024) for name in copies]
    assert [(case.kernel, case.device, case.n) for case in cases[10:]] == [
        ("addOne", "cpu", 100_000),
        ("addOnePageable", "cuda:0", 100_000),
        ("addOnePinned", "cuda:0", 100_000),
    ]


def test_the_config_of_the_concepts_has_the_documents_array_and_a_gigabyte() -> None:
    config = from_toml(ROOT / "configs/concepts.toml")
    cases = [item.case for item in plan(config, LIMITS, RESOLVED)]
    assert {case.kernel for case in cases if case.problem == "constant"} == set(registry.names("constant"))
    assert {case.n for case in cases if case.problem == "transfer"} == {2**exponent for exponent in range(8, 29, 2)}
    assert 100_000 in {case.n for case in cases if case.kernel == "addOne"}


def test_the_kernel_of_a_round_trip_can_be_explained() -> None:
    case = next(
        item.case
        for item in plan(from_flags({"sweep": [{"problem": "roundtrip"}]}), LIMITS, RESOLVED)
        if item.case.kernel == "addOnePinned"
    )
    assert [access.sectors for access in explain(case).memory] == [4.0, 4.0]


def test_the_sentence_compares_page_locked_with_pageable_memory(rows: Rows) -> None:
    times = {"h2dPageable": [4.0] * 5, "h2dPinned": [1.0] * 5, "d2hPageable": [2.0] * 5, "d2hPinned": [2.0] * 5}
    assert sentence(Run(rows(times, problem="transfer", block=None))) == (
        "Host to device page-locked memory is 4.00× as fast as pageable; "
        "device to host page-locked memory is no different from pageable within the noise."
    )
    assert sentence(Run(rows({"h2dPinned": [1.0] * 5}, problem="transfer", block=None))) == ""


def on_cpu(row: Row) -> Row:
    return replace(row, device="cpu") if row.kernel == "addOne" else row


def test_the_sentence_says_what_the_copies_leave_of_the_kernel(rows: Rows) -> None:
    times = {"addOne": [1.0] * 5, "addOnePageable": [4.0] * 5, "addOnePinned": [0.5] * 5}
    found = [on_cpu(row) for row in rows(times, problem="roundtrip", block=None)]
    assert sentence(Run(found)) == (
        "With its copies addOnePageable is slower than the loop on one CPU thread: it takes 4.00 times as long; "
        "with its copies addOnePinned is 2.00× as fast as the loop on one CPU thread."
    )
    assert sentence(Run(found[1:])) == ""


def test_the_sentence_of_a_stencil_compares_ways_and_memories(rows: Rows) -> None:
    times = {"globalUniform": [2.0] * 5, "constantUniform": [1.0] * 5, "constantDiverging": [5.0] * 5}
    assert sentence(Run(rows(times, problem="constant"))) == (
        "Of the stencils constantDiverging is slower than constantUniform: it takes 5.00 times as long; "
        "constantUniform is 2.00× as fast as globalUniform."
    )
    assert sentence(Run(rows({"globalUniform": [2.0] * 5}, problem="constant"))) == ""


def test_the_heading_says_bytes_and_no_cache(rows: Rows) -> None:
    (section,) = sections(Run(rows({"h2dPinned": [1.0] * 5}, problem="transfer", block=None, n=256)))
    assert section.heading == "cuda:0 · host-device copy 1 KiB float32"
    (section,) = sections(Run(rows({"constantUniform": [1.0] * 5}, problem="constant", n=256)))
    assert section.heading == "cuda:0 · 1D stencil 256 float32 · warm cache"
