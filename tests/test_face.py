"""The package's face, as a notebook uses it: measure, resume, read, compare, explain, tune."""

from __future__ import annotations

import doctest
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import smembench
from conftest import DOCUMENTS
from smembench.model.errors import UsageError
from smembench.model.measurement import Trial
from smembench.run.runner import Runner
from smembench.store.journal import Journal
from smembench.store.run_folder import JOURNAL
from smembench.studies import tune
from smembench.studies.run import RunInterrupted
from smembench.studies.tune import TuneInterrupted

SWEEP: dict[str, Any] = {"problem": "transpose", "n": 8, "kernel": "copyGmem", "block": "4x4", "device": "cpu"}
SAMPLING: dict[str, Any] = {
    "name": "tiny",
    "samples": 3,
    "rounds": 2,
    "precision": 90.0,
    "max_seconds": 0.2,
    "warmup": 0.0,
}
CONFIG: dict[str, Any] = {**SAMPLING, "sweep": [SWEEP]}
UNCOMPILED: dict[str, Any] = {
    **SAMPLING,
    "sweep": [{"problem": "transpose", "n": [8, 9], "kernel": "memcpy", "device": "cpu"}],
}
"""Two cases where no kernel is compiled."""


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Ctrl-C after two trials of any run; undo it to run on."""
    whole = Runner.run

    def two_trials(runner: Runner, *arguments: Any, **named: Any) -> Iterator[Trial]:
        yield from islice(whole(runner, *arguments, **named), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "run", two_trials)
    return monkeypatch


def test_completion_shows_the_public_names_only() -> None:
    assert dir(smembench) == sorted(smembench.__all__)


def test_the_examples_of_its_documentation_hold() -> None:
    assert doctest.testmod(smembench).failed == 0


@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_told_on_demand(capsys: pytest.CaptureFixture[str], progress: bool) -> None:
    smembench.measure(UNCOMPILED, progress=progress)
    out, err = capsys.readouterr()
    assert (out, "round 1 done" in err) == ("", progress)


def test_a_sweep_by_its_keys() -> None:
    result = smembench.measure(**SWEEP, **SAMPLING)
    assert list(result["kernel"]) == ["memcpy", "copyGmem"]
    assert {row.status for row in result} == {"ok"}
    assert (result["run_id"].str.endswith("-tiny")).all()
    assert list(result.samples.groupby("case_id", sort=False).size()) == list(result["samples"])


def test_overrides_change_a_dict_and_leave_it_as_it_was() -> None:
    frame = smembench.measure(CONFIG, ["n=16", "transpose.kernel=naiveGmem", "samples=4", "max_seconds=60"]).frame
    assert set(frame.n) == {16}
    assert "naiveGmem" in set(frame.kernel)
    assert (frame.samples >= 4).all()
    assert CONFIG["sweep"] == [{**SWEEP, "n": 8, "kernel": "copyGmem"}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"problem": "transpose", "size": 8}, "'size' in sweep 1: no such key"),
        ({"config": CONFIG, "n": 8}, "n: give a config or the keys of a sweep"),
        ({"config": CONFIG, "overrides": ["nn=8"]}, "did you mean n"),
        ({"config": "nowhere.toml"}, "nowhere.toml: there is no such file"),
    ],
)
def test_what_cannot_run_is_a_usage_error(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        smembench.measure(**arguments)


def test_a_stored_run_is_read_and_compared(tmp_path: Path) -> None:
    result = smembench.measure(UNCOMPILED, output=tmp_path)
    folder = tmp_path / result["run_id"][0]
    stored = smembench.read(folder)
    assert stored.frame.equals(smembench.read(folder / "cases.csv").frame)
    assert stored.samples.equals(result.samples)
    assert repr(stored) == repr(result)
    for compared in (smembench.compare(folder, [result]), result.compare(folder), stored.compare([result, folder])):
        assert {case.case.id for case in compared.cases} == set(result["case_id"])
    with pytest.raises(UsageError, match="the run is complete"):
        smembench.resume(folder)


@pytest.mark.slow
def test_ctrl_c_is_a_keyboard_interrupt_with_what_was_finished(interrupted: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as unstored:
        smembench.measure(UNCOMPILED)
    assert isinstance(unstored.value, RunInterrupted)
    assert str(unstored.value) == "interrupted: what was measured is in the result, and not stored"
    assert len(smembench.result(unstored.value.run)) == 2

    with pytest.raises(RunInterrupted) as stored:
        smembench.measure(UNCOMPILED, output=tmp_path)
    folder = stored.value.run.path
    assert folder is not None
    assert f"smembench run --resume {folder}" in str(stored.value)
    assert set(smembench.read(folder)["case_id"]) == set(smembench.result(stored.value.run)["case_id"])
    interrupted.undo()
    assert set(smembench.resume(folder)["status"]) == {"ok"}
    assert not (folder / JOURNAL).exists()


@pytest.mark.slow
def test_ctrl_c_in_a_search_has_the_best_so_far(interrupted: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt, match="is the best so far") as cut:
        smembench.tune("matmul", n=16, device="cpu", kernel="cpu", samples=3, rounds=1, max_seconds=0.1, warmup=0)
    assert isinstance(cut.value, TuneInterrupted)
    assert cut.value.so_far is not None
    assert cut.value.so_far.best.kernel == "cpu"


def test_a_trial_is_on_disk_before_the_next_begins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(journal: Journal, trial: Trial) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "append", full)
    with pytest.raises(smembench.SmembenchError, match=r"cannot be written \(No space left on device\)"):
        smembench.measure(UNCOMPILED, output=tmp_path)


def test_a_kernel_is_explained_without_a_gpu() -> None:
    outcome = smembench.explain_kernel("transposeSmem", n=256, capability="9.0")
    assert outcome.degree("load") == 32
    assert smembench.explain_kernel("transposeSmemPad", n=256, pad_width=1).degree("load") == 1


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"n": 0}, "--n 0: is below 1"),
        ({"n": -1}, "--n -1: is not a whole number"),
        ({"n": 64.5}, "--n 64.5: is not a whole number"),
        ({"block": (8, "x")}, "write whole numbers as dimensions"),
        ({"block": ()}, "write whole numbers as dimensions"),
        ({"block": "32x8,16x16"}, "2 cases: give one"),
        ({"dtype": "float32,float64"}, "2 cases: give one"),
    ],
)
def test_what_cannot_be_explained_is_a_usage_error(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(smembench.UsageError, match=reason):
        smembench.explain_kernel("transposeSmem", capability="9.0", **wrong)


@pytest.mark.parametrize("kind", ["loads", "Load", ""])
def test_an_unknown_kind_of_access_is_none_without_conflicts(kind: str) -> None:
    outcome = smembench.explain_kernel("transposeSmem", n=64, capability="9.0")
    for figure in (outcome.degree, outcome.sectors, outcome.worst):
        with pytest.raises(UsageError, match=f"^kind '{kind}': give load or store$"):
            figure(kind)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: smembench.explain_kernel(3), "kernel 3: is no text; give a name"),  # type: ignore[arg-type]
        (
            lambda: smembench.explain_kernel("transposeSmem", dtype=np.float32),  # type: ignore[arg-type]
            "--dtype <class 'numpy.float32'>: is no text; give a name, such as 'float32'",
        ),
        (
            lambda: smembench.tune("transpose", kernel=["memcpy"], device="cpu"),  # type: ignore[arg-type]
            "--kernel ['memcpy']: is no text; give a name, such as 'memcpy'",
        ),
        (lambda: smembench.layout(3), "load 3: give a function of the lane, or the lanes' offsets"),  # type: ignore[arg-type]
        (lambda: smembench.layout(range(32), itemsize=4.0), "itemsize 4.0: give a whole number"),  # type: ignore[arg-type]
        (lambda: smembench.layout(range(32), row="a"), "row 'a': give a whole number"),  # type: ignore[arg-type]
        (lambda: smembench.tune("transpose", device=0), "device '0': no such device; write auto"),  # type: ignore[arg-type]
    ],
)
def test_a_value_of_another_type_is_a_usage_error(call: Callable[[], object], reason: str) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)):
        call()


def test_a_key_of_tune_that_does_not_exist_is_of_no_stored_config() -> None:
    with pytest.raises(UsageError, match=r"^'bogus': no such key"):
        smembench.tune("matmul", kernel="cpu", n=16, device="cpu", bogus=3)


def test_numbers_may_be_numpys() -> None:
    numbers: Any = {"n": np.int64(64), "block": (np.int32(16), 16)}
    assert smembench.explain_kernel("transposeSmem", **numbers, capability="9.0").degree("load") == 8
    config = {**SAMPLING, "sweep": [{**UNCOMPILED["sweep"][0], "n": [np.int64(8), np.uint8(16)]}]}
    assert [row.n for row in smembench.measure(config)] == [8, 16]


def test_a_comparison_names_a_side_without_runs() -> None:
    with pytest.raises(smembench.UsageError, match="a side without runs"):
        smembench.compare([], DOCUMENTS)


@pytest.mark.slow
def test_the_best_case_is_found(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "SIDES", (8,))  # every block is compiled
    outcome = smembench.tune(
        "transpose", n=16, device="cpu", kernel="naiveGmem", samples=3, rounds=1, max_seconds=0.02, warmup=0
    )
    assert outcome.best in outcome.finalists
    assert len(outcome.finalists) > 1
    assert (outcome.best.problem, outcome.best.n, outcome.best.kind) == ("transpose", 16, "cpu")
    assert capsys.readouterr() == ("", "")
