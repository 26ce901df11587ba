"""The search for a commit on planted slowdowns, in the noise between runs of the nights' model N1p."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import pytest
from nights.simulator import N1P

from smembench.model.errors import UsageError
from smembench.studies.bisect import run
from smembench.studies.bisect.run import bisect
from smembench.studies.bisect.search import MOST, Measured, Result, Times, next_step
from smembench.studies.bisect.state import TEMPORARY, State, Trial
from smembench.studies.compare import Rules

COMMITS = 16


def searched(
    seed: int,
    steps: Mapping[int, float],
    *,
    broken: Collection[int] = (),
    cases: Mapping[str, bool] | None = None,
    drift: float = 0.0,
    jump_at: int | None = None,
) -> tuple[Result, set[int], int]:
    """Search among commits that are slower from some on; also which were built, and how many processes it took.

    Args:
        seed: of the noise.
        steps: by commit how much slower it and all after it are.
        broken: commits that do not build.
        cases: by case whether it is slower.
        drift: how much slower the machine gets with every process.
        jump_at: the process from which on it is 3 % slower.
    """
    rng, processes = np.random.default_rng(seed), 0
    of_case = rng.uniform(*N1P.case)
    times: dict[int, list[Times]] = {}
    skipped: set[int] = set()
    while not isinstance(step := next_step(Measured(COMMITS, times, frozenset(skipped)), Rules()), Result):
        for commit in step:
            if commit in broken:
                skipped.add(commit)
                continue
            processes += 1
            machine = (1 + drift * processes) * (1.03 if jump_at is not None and processes >= jump_at else 1)
            shared = rng.normal(0, N1P.shared) + rng.normal(0, N1P.group) + N1P.thermal * rng.uniform(0.5, 1)
            shared += rng.exponential(0.01) if rng.random() < N1P.slow_rounds else 0
            slower = math.prod(1 + by for at, by in steps.items() if commit >= at)
            result = {
                case: 0.1 * machine * (slower if hit else 1) * math.exp(shared + rng.normal(0, of_case))
                for case, hit in (cases or {"case": True}).items()
            }
            times.setdefault(commit, []).append(result)
    return step, times.keys() | skipped, processes


def test_twenty_of_twenty_culprits_of_three_per_cent_are_found_in_six_builds() -> None:
    for seed in range(20):
        culprit, broken = 1 + seed % (COMMITS - 1), {1 + (3 * seed + 6) % (COMMITS - 2)} - {1 + seed % (COMMITS - 1)}
        before = max(commit for commit in range(culprit) if commit not in broken)
        result, built, _ = searched(seed, {culprit: 0.03}, broken=broken)
        assert (list(result.culprits), list(result.undecided)) == ([(before, culprit)], []), seed
        assert len(built - broken) <= 6, seed


def test_two_culprits_are_told_from_one() -> None:
    for seed in range(10):
        result, _, _ = searched(seed, {4: 0.03, 11: 0.03})
        assert list(result.culprits) == [(3, 4), (10, 11)]


def test_only_the_cases_that_are_slower_are_followed() -> None:
    cases = {"slower": True, "the same": False, "also slower": True}
    result, _, _ = searched(3, {9: 0.03}, cases=cases)
    assert (list(result.culprits), set(result.cases)) == ([(8, 9)], {"slower", "also slower"})


def test_without_a_slowdown_nothing_is_named_and_the_smallest_that_would_be_is_told() -> None:
    for seed in range(10):
        result, built, processes = searched(seed, {})
        assert "the bad commit is not slower than the good one: not decidable below " in result.refused
        assert float(result.refused.split()[-5]) < 2
        assert (built, processes) == ({0, COMMITS - 1}, 2 * MOST)


def test_what_is_too_small_for_the_noise_is_left_open_or_right() -> None:
    verdicts = Counter[str]()
    for seed in range(20):
        result, _, _ = searched(seed, {9: 0.012})
        verdicts["right" if list(result.culprits) == [(8, 9)] else "wrong" if result.culprits else "open"] += 1
    assert verdicts["wrong"] == 0
    assert verdicts["right"] > 5


@pytest.mark.parametrize("jump_at", range(4, 40, 4))
def test_a_machine_that_becomes_slower_gives_no_wrong_commit(jump_at: int) -> None:
    for seed in range(6):
        result, _, _ = searched(seed, {9: 0.03}, jump_at=jump_at)
        assert list(result.culprits) in ([(8, 9)], [])


def test_a_machine_that_drifts_is_refused() -> None:
    for seed in range(6):
        result, _, _ = searched(seed, {9: 0.03}, drift=0.001)
        assert "the machine has changed" in result.refused or "not slower" in result.refused
    result, _, _ = searched(1, {9: 0.03}, drift=0.0001)
    assert list(result.culprits) == [(8, 9)]


def test_a_search_goes_on_from_any_state() -> None:
    """What comes next follows from what was measured alone, so a killed search is asked the same again."""
    times: dict[int, list[Times]] = {0: [{"a": 1.0}] * 3, 15: [{"a": 1.1}] * 3}
    assert next_step(Measured(COMMITS, times), Rules()) == [0, 8, 15]
    times[8] = [{"a": 1.1}] * 2
    assert next_step(Measured(COMMITS, times), Rules()) == [0, 8, 15]
    times[8] = [{"a": 1.1}] * 3
    assert next_step(Measured(COMMITS, times), Rules()) == [0, 4, 15]
    assert next_step(Measured(COMMITS, times, frozenset({4})), Rules()) == [0, 5, 15]


def test_a_commit_between_is_measured_in_turn_with_the_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / f"{TEMPORARY}work"
    state = State(
        package="copier",
        commits=["1.0", "1.1", "2.0"],
        subjects=[""] * 3,
        name="x",
        threshold=0.005,
        cases=["case"],
        keys={},
        sweeps=[],
        build="",
        worktrees=str(work),
    )
    state.store(tmp_path)
    monkeypatch.setattr(
        run, "_trial", lambda state, folder, worktrees, commit, note: Trial(commit=commit, run=str(commit))
    )
    monkeypatch.setattr(run, "load", lambda path, shown: path.name)
    monkeypatch.setattr(run, "_times", lambda name, state: {"case": 2.0 if name == "2" else 1.0})
    monkeypatch.setattr(run, "_cause", lambda *arguments: [])
    result = bisect(tmp_path, print)
    assert list(result.result.culprits) == [(1, 2)]
    order = [trial["commit"] for trial in json.loads((tmp_path / "bisect.json").read_text())["trials"]]
    assert order == [2, 0, 0, 2, 2, 0, *(0, 1, 2), *(2, 1, 0), *(0, 1, 2)]
    assert not work.exists()


def test_history_leaves_the_runs_of_other_commits_out(tmp_path: Path) -> None:
    from conftest import NIGHTLY
    from smembench.studies.history.read import read_nights

    (tmp_path / "bisect/run").mkdir(parents=True)
    for name in ("cases.csv", "run.json"):
        (tmp_path / "bisect/run" / name).write_bytes((NIGHTLY / name).read_bytes())
    assert len(read_nights(tmp_path)[0]) == 1
    (tmp_path / "bisect/bisect.json").write_text("{}")
    assert read_nights(tmp_path) == ([], [])


def test_a_state_that_names_a_folder_of_somebody_else_removes_nothing(tmp_path: Path) -> None:
    (mine := tmp_path / "mine/kept").mkdir(parents=True)
    state = State(
        commits=["a", "b"],
        subjects=["", ""],
        name="x",
        threshold=0.005,
        cases=[],
        keys={},
        sweeps=[],
        build="",
        worktrees=str(mine.parent),
    )
    state.store(tmp_path)
    with pytest.raises(UsageError, match="damaged: worktrees: "):
        bisect(tmp_path, print)
    assert mine.exists()
