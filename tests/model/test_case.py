from __future__ import annotations

from dataclasses import Field, fields, replace

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
    compiler=st.sampled_from(["numba", "nvrtc"]),
    stride=st.none() | sides,
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


@given(cases, cases, st.sampled_from(fields(Case)))
def test_ids_are_equal_exactly_when_cases_are(case: Case, other: Case, field: Field[object]) -> None:
    assert (case.id == other.id) == (case == other)
    changed = replace(case, **{field.name: getattr(other, field.name)})
    assert (case.id == changed.id) == (case == changed)


def test_ids_are_the_same_in_every_version() -> None:
    assert CASE.id == "transpose/transposeSmemPad/cuda:0/numba/float32/300x400/b32x8/pad1/warm"
    assert Case("matmul", "cpu", "cpu", "float64", 2, 4, 3).id == "matmul/cpu/cpu/numba/float64/2x3x4/warm"
