from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from smembench.model.case import Block, Case, parameters_of

sides = st.integers(1, 20)
cases = st.builds(
    Case,
    problem=st.sampled_from(["transpose", "matmul"]),
    kernel=st.sampled_from(["naive", "tiled"]),
    device=st.sampled_from(["cpu", "cuda:0", "cuda:1"]),
    dtype=st.sampled_from(["float32", "float64"]),
    m=sides,
    n=sides,
    k=st.none() | sides,
    block=st.none() | st.builds(Block, sides, sides),
    pad=st.none() | st.integers(0, 2),
    cache=st.sampled_from(["warm", "cold"]),
    parameters=st.lists(st.tuples(st.sampled_from(["items", "depth2"]), sides), unique_by=lambda pair: pair[0]).map(
        tuple
    ),
)

CASE = Case("transpose", "transposeSmemPad", "cuda:0", "float32", 300, 400, None, Block(32, 8), 1)


@given(cases)
def test_a_case_round_trips_through_json(case: Case) -> None:
    adapter = TypeAdapter(Case)
    assert adapter.validate_json(adapter.dump_json(case)) == case


@given(cases)
def test_the_id_has_the_parameters(case: Case) -> None:
    assert parameters_of(case.id) == case.parameters
    assert dict(case.parameters) == {name: case.parameter(name) for name, _ in case.parameters}


def test_the_id_of_a_case_without_parameters_is_as_it_was_before_there_were_any() -> None:
    assert "=" not in CASE.id


@given(cases, cases)
def test_ids_are_equal_exactly_when_cases_are(case: Case, other: Case) -> None:
    assert (case.id == other.id) == (case == other)


@pytest.mark.parametrize(
    "change",
    [
        {"problem": "matmul"},
        {"kernel": "transposeSmem"},
        {"device": "cuda:1"},
        {"dtype": "float64"},
        {"m": 301},
        {"n": 401},
        {"m": 400, "n": 300},
        {"k": 500},
        {"block": Block(8, 32)},
        {"block": None},
        {"pad": 2},
        {"pad": None},
        {"cache": "cold"},
        {"compiler": "nvcc"},
        {"parameters": (("items", 8),)},
    ],
)
def test_every_field_is_in_the_id(change: dict[str, Any]) -> None:
    assert replace(CASE, **change).id != CASE.id


def test_ids_are_the_same_in_every_version() -> None:
    assert CASE.id == "transpose/transposeSmemPad/cuda:0/numba/float32/300x400/b32x8/pad1/warm"
    assert Case("matmul", "cpu", "cpu", "float64", 2, 4, 3).id == "matmul/cpu/cpu/numba/float64/2x3x4/warm"
