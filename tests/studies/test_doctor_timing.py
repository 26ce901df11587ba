"""Reading Nsight Compute's CSV, and what counts as agreement."""

from __future__ import annotations

import pytest

from smembench.explain.ncu import parse
from smembench.studies.doctor.timing import CASES, METRIC, Agreement

OUTPUT = """==PROF== Connected to process 42
"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","copy","gpu__time_duration.sum","ns","1,856"
"1","copy","gpu__time_duration.sum","ns","103877056.5"
"""


def test_readings_are_read_in_the_order_of_the_launches() -> None:
    assert parse(OUTPUT) == {METRIC: [1856.0, 103877056.5]}
    assert parse("==ERROR== no GPU\n") == {}


@pytest.mark.parametrize(
    ("ours", "ncu", "agrees"), [(2.5, 1.86, True), (2.6, 1.86, False), (102.9, 100, True), (103.1, 100, False)]
)
def test_agreement_is_3_percent_or_0_7_microseconds(ours: float, ncu: float, agrees: bool) -> None:
    assert Agreement(CASES[0], ours, ncu).agrees is agrees
