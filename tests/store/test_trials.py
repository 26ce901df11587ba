"""A trial in the journal and on the screen."""

from __future__ import annotations

import json

from smembench.model.case import Block, Case
from smembench.model.measurement import Conditions, Status, Trial
from smembench.store.journal import decode, encode
from smembench.views.run import trial_line

TRIAL = Trial(
    Case("matmul", "tiled", "cuda:0", "float32", 30, 40, 50, Block(16, 16), stride=64),
    1,
    Status.OK,
    "2026-01-01T00:00:00+00:00",
    verified=True,
    max_error=1e-7,
    samples=(1.5, 2.5),
    discarded=3,
    discarded_ms=(9.0, 8.0, 7.0),
    seconds=0.25,
    conditions=Conditions(sm_clock_mhz=1980, throttle_reasons="none"),
)


def test_the_journal_keeps_everything_of_a_trial() -> None:
    assert decode(json.loads(json.dumps(encode(TRIAL)))) == TRIAL


def test_a_journal_from_before_discarded_samples_were_kept_is_readable() -> None:
    older = encode(TRIAL)
    del older["discarded_ms"], older["case"]["stride"]
    read = decode(older)
    assert (read.discarded, read.discarded_ms, read.case.stride) == (3, (), None)


def test_discarded_samples_are_listed_after_those_kept() -> None:
    line = trial_line(TRIAL)
    assert line.startswith(
        "round 2 matmul/tiled/cuda:0/numba/float32/30x50x40/s64/b16x16/warm: 2 samples of 2.00000 ms"
    )
    assert "3 discarded, 0.25 s, SM 1980 MHz" in line
    assert line.endswith(": 1.50000 2.50000; discarded: 9.00000 8.00000 7.00000")


def test_a_trial_that_discarded_nothing_says_no_more() -> None:
    assert trial_line(Trial(TRIAL.case, 0, Status.OK, "", samples=(1.0,))).endswith(": 1.00000")
