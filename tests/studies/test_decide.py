"""Ambiguous cases measured again: on simulated nights, and once as a user does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nights.simulator import N0, Nights, write

from smembench.run.config import Config
from smembench.store.load import load
from smembench.studies import decide as module
from smembench.studies.compare import CaseComparison, Rules, Verdict
from smembench.studies.nightly.finish import Finished, Plan, compare_stored, finish
from smembench.studies.run import Outcome
from smembench.views.nightly import summarise

CASES = [
    f"transpose/{kernel}/cuda:0/numba/float32/4096x4096/b32x32/{rest}warm"
    for kernel, rest in (("transposeSmem", "pad0/"), ("transposeSmemPad", "pad1/"), ("naiveGmem", ""))
]
Again = Callable[[Mapping[str, float]], list[list[str]]]


@pytest.fixture
def nights() -> Nights:
    return Nights(N0, 12)


@pytest.fixture
def again(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> Again:
    """Have the cases of a config measured by the simulator, with these steps; returns what each run is asked for."""

    def steps(slower: Mapping[str, float]) -> list[list[str]]:
        asked: list[list[str]] = []

        def run(config: Config, *_: object, **__: object) -> Outcome:
            wanted = [sweep["case"] for sweep in config.data["sweep"]]  # type: ignore[attr-defined]
            asked.append(wanted)
            measured = nights.next(slower)
            return Outcome(measured.only([row for row in measured.rows if row.case_id in wanted]), None)

        @contextmanager
        def open_plan(config: object) -> Iterator[tuple[Any, ...]]:
            yield [SimpleNamespace(case=SimpleNamespace(id=name), skip="") for name in nights.cases], {}, ()

        def narrowed(config: object, cases: Any, **keys: object) -> object:
            return SimpleNamespace(data={"sweep": [{"case": case.id} for case in cases]})

        monkeypatch.setattr(module, "run", run)
        monkeypatch.setattr(module, "open_plan", open_plan)
        monkeypatch.setattr(module, "narrowed", narrowed)
        monkeypatch.setattr(module, "from_stored", lambda *_: SimpleNamespace(name="nightly"))
        return asked

    return steps


def stored(nights: Nights, root: Path, slower: Mapping[str, float], noisier: float) -> Path:
    """Eight nights, and then one in which cases are slower and all of them noisier."""
    for _ in range(8):
        write(nights.next(), root)
    return write(nights.next(slower, noisier=noisier), root)


def judged(night: Finished) -> dict[str, CaseComparison]:
    return {case.case.id: case for case in night.compared[0][1].cases}


def test_what_a_noisy_night_left_open_is_decided_the_most_probable_first(
    nights: Nights, again: Again, tmp_path: Path
) -> None:
    night = compare_stored("last:7", stored(nights, tmp_path, {CASES[0]: 0.05}, 0.03), Rules.of_percent)
    assert judged(night)[CASES[0]].verdict is Verdict.AMBIGUOUS
    asked = again({CASES[0]: 0.05})
    result = module.decide(night.compared[0][1], night.run, 3600.0, Rules())
    assert result.comparison is not None
    assert asked[0][0] == CASES[0]
    verdicts = {case.case.id: case for case in result.comparison.cases}
    assert [case for case, one in verdicts.items() if one.verdict is Verdict.SLOWER] == [CASES[0]]
    assert 1.04 < (verdicts[CASES[0]].ratio or 0) < 1.06
    assert len(asked) <= module.LOOKS
    assert all(CASES[0] not in later for later in asked[1:])  # decided by the first run
    left = [one for one in verdicts.values() if one.verdict is Verdict.AMBIGUOUS]
    assert all(one.reason.startswith("not decidable below ") for one in left)


def test_without_an_ambiguous_case_nothing_is_measured(nights: Nights, again: Again, tmp_path: Path) -> None:
    night = compare_stored("last:7", stored(nights, tmp_path, {}, 0.0), Rules.of_percent)
    comparison = night.compared[0][1]
    clear = replace(comparison, cases=[case for case in comparison.cases if case.verdict is not Verdict.AMBIGUOUS])
    asked = again({})
    result = module.decide(clear, night.run, 3600.0, Rules())
    assert (result.comparison, result.error, asked) == (None, None, [])


def test_what_stays_open_says_from_which_slowdown_on_it_would_not(nights: Nights) -> None:
    base = [nights.next() for _ in range(7)]
    cases = [row.case_id for row in base[0].rows if row.device != "cpu"][::6]

    def judged_again(slower: Mapping[str, float]) -> list[CaseComparison]:
        again = [nights.next(slower) for _ in range(2)]
        sides = [
            [run.only([row for row in run.rows if row.case_id in cases]) for run in side] for side in (base, again)
        ]
        return module.judged_with_limit(sides[0], sides[1], Rules())

    limits = {
        case.case.id: float(case.reason.removeprefix("not decidable below ").partition(" ")[0]) / 100
        for case in judged_again({})
        if case.verdict is Verdict.AMBIGUOUS
    }
    assert limits
    assert 0.005 < min(limits.values()) < 0.03  # N0 has 0.15 % at most between runs, but for the clock of short kernels
    seen = [case.verdict is Verdict.SLOWER for case in judged_again(limits) if case.case.id in limits]
    assert sum(seen) >= 0.9 * len(seen)
    fewer = [
        case for case in judged_again({case: limit / 3 for case, limit in limits.items()}) if case.case.id in limits
    ]
    assert sum(case.verdict is Verdict.SLOWER for case in fewer) <= 0.2 * len(fewer)


def test_time_for_few_cases_is_for_the_most_probable(nights: Nights, again: Again, tmp_path: Path) -> None:
    night = compare_stored("last:7", stored(nights, tmp_path, {CASES[0]: 0.05}, 0.03), Rules.of_percent)
    asked = again({})
    result = module.decide(night.compared[0][1], night.run, 0.0, Rules())
    assert asked == [[CASES[0]]]
    assert result.left == len(module.unsure(night.compared[0][1])) - 1


@pytest.mark.parametrize("slower", [0.0, 0.05])
def test_a_night_decides_within_the_time_of_its_config(
    nights: Nights, again: Again, tmp_path: Path, slower: float
) -> None:
    folder = stored(nights, tmp_path, {CASES[0]: 0.05}, 0.03)
    assert finish(Plan("last:7"), tmp_path, folder).exit_code == 0
    described = json.loads((folder / "run.json").read_text())
    described["config"]["decide"] = 3600.0
    (folder / "run.json").write_text(json.dumps(described))
    again({CASES[0]: slower})
    result = finish(Plan("last:7"), tmp_path, folder)
    assert result.exit_code == (3 if slower else 0)
    headline = summarise(result, folder).headline
    assert f"{'1' if slower else 'none'} slower when measured again" in headline


def test_the_config_of_one_case_measures_it(tmp_path: Path) -> None:
    from smembench.model.device import Limits
    from smembench.run.config import from_toml
    from smembench.run.narrowed import narrowed
    from smembench.run.plan import Plan as PlanOfRun

    resolve = {"auto": "cuda:0", "cuda": "cuda:0", "cuda:0": "cuda:0", "cpu": "cpu"}
    limits = {"cuda:0": Limits(2**36, 2**26, 1024, (1024, 1024), (2**31, 65535), 49152, 232448, 2**31, 132, "9.0")}
    limits["cpu"] = Limits(2**38)
    for name in ("nightly", "tensor"):
        config = from_toml(Path(name))
        whole = [item.case for item in PlanOfRun.of(config, resolve).cases(limits) if not item.skip]
        again = narrowed(config, whole, name="again")
        assert {case.id for case in whole} <= {item.case.id for item in PlanOfRun.of(again, resolve).cases(limits)}
        assert again.samples == config.samples


def test_a_run_is_decided_by_hand(program: Any, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(
        'name = "tiny"\nsamples = 3\nrounds = 3\nprecision = 90\nmax_seconds = 0.2\nwarmup = 0\n'
        '[[sweep]]\nproblem = "transpose"\nkernel = "copyGmem"\ndevice = "cpu"\nn = 8\nblock = "4x4"\n'
    )
    for _ in range(3):
        assert program("run", tmp_path / "tiny.toml", "--output", tmp_path / "results").returncode == 0
    runs = sorted((tmp_path / "results").iterdir())
    command = ("run", "--decide", runs[-1], "--compare-to", "last:2", "--max-minutes", 0)
    decided = program(*command, "--threshold", 0, "--json")  # with which no case is the same
    assert decided.returncode in (0, 3), decided.stderr
    folders = [path for path in (tmp_path / "results").iterdir() if path.name.endswith("-decide")]
    assert len(folders) == ("no case is ambiguous" not in decided.stderr)  # but slower or faster at once
    assert all(load(path).id for folder in folders for path in folder.iterdir())
    refused = program("run", tmp_path / "tiny.toml", "--decide", runs[-1])
    assert (refused.returncode, "takes the run's own config" in refused.stderr) == (2, True)
