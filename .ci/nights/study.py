"""What the verdicts make of simulated nights: ``PYTHONPATH=.:.ci python -m nights.study FILE.csv [SERIES [FIRST]]``.

Each series is a GPU of its own with 22 nights, of which the first seven are only compared with; of a season it has 67.
Forty series make 600 nights per model, 2400 of the season, and take two idle cores some fifteen minutes. With FIRST,
the series before it are those of the file.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

import numpy as np

from nights.simulator import MODELS, SEASON, Model, Nights
from smembench.store.csv_files import table_text
from smembench.store.run import Run
from smembench.studies.compare import Comparison, Rules, Verdict, compare_runs, pairing
from smembench.studies.nightly.last import compare_with_last

WARM, NIGHTS = 7, 15
CLASSES = {"under 10 µs": (0.0, 0.01), "30 to 300 µs": (0.03, 0.3), "0.3 to 30 ms": (0.3, 30.0)}
"""Durations in ms of the cases that are made slower."""
SIZES = (0.02, 0.03, 0.05, 0.1)
HELD = 14
"""Nights after a step."""
ALL = tuple(range(1, HELD + 1))
KEPT = 200
"""Runs of which a worker keeps the times."""

Found = Counter[tuple[str, str]]
"""How often something happened, by what was asked and "yes" or "of"."""


def slowed(run: Run, steps: Mapping[str, float]) -> Run:
    """The same run with the samples of some cases longer."""
    samples = {
        case: {number: [value * (1 + steps.get(case, 0.0)) for value in values] for number, values in rounds.items()}
        if case in steps
        else rounds
        for case, rounds in run.samples.items()
    }
    return replace(run, samples=samples)


def clocked(run: Run, by: float) -> Run:
    """The same run with SM clocks so many times as high."""
    rows = [replace(row, sm_clock_mhz=round(by * row.sm_clock_mhz)) if row.sm_clock_mhz else row for row in run.rows]
    return replace(run, rows=rows)


def last(before: Sequence[Run], new: Run, count: int = WARM, rules: Rules | None = None) -> Comparison:
    """A night by ``last:N``."""
    return compare_with_last(before, new, count, rules or Rules())


def slower(result: Comparison, case: str) -> bool:
    """Whether a case is slower."""
    return any(slow.case.id == case for slow in result.regressions)


def note(result: Found, asked: str, comparison: Comparison) -> None:
    """Count a night in which nothing changed."""
    changed = sum(case.verdict in (Verdict.SLOWER, Verdict.FASTER) for case in comparison.cases)
    covered = [case.low <= 1 <= case.high for case in comparison.cases if case.low and case.high]
    for what, yes, of in (
        ("false nights", bool(comparison.regressions), 1),
        ("false cases", changed, len(comparison.cases)),
        ("covered", sum(covered), len(covered)),
    ):
        result[f"{asked}: {what}", "yes"] += yes
        result[f"{asked}: {what}", "of"] += of


def unchanged(model: Model, seed: int, nights: int = NIGHTS) -> Found:
    """Nights in which nothing changed, by ``last:7``; the last of them also otherwise."""
    result: Found = Counter()
    made = Nights(model, seed)
    runs = [made.next() for _ in range(WARM + nights)]
    for place in range(WARM, len(runs)):
        before, new = runs[:place], runs[place]
        judged = last(before, new)
        note(result, "last:7", judged)
        if model.levels:
            slow = sum(made.slower[:place])
            known = "once each level was seen on three nights" if 3 <= slow <= place - 3 else "before"
            result[f"last:7: false nights, {known}", "yes"] += bool(judged.regressions)
            result[f"last:7: false nights, {known}", "of"] += 1
    note(result, "last:1", last(before, new, 1))
    note(result, "last:3", last(before, new, 3))
    note(result, "A B alone", compare_runs(before[-1:], [new]))
    note(result, "A B", compare_runs(before[-1:], [new], beside=before[-11:-1]))
    return result


def noisy(model: Model, seed: int, nights: int = NIGHTS) -> Found:
    """Nights whose rounds are noisier."""
    result: Found = Counter()
    made = Nights(model, seed)
    before = [made.next() for _ in range(WARM)]
    for by, _ in product((0.01, 0.02), range(nights)):
        note(result, f"rounds {by:.0%} noisier", last(before, made.next(noisier=by)))
    return result


def seen(model: Model, seed: int, sizes: Sequence[float] = SIZES) -> Found:
    """One case slower, on its first night: after seven nights, after thirty, and after one bad night, 10 % slower."""
    result: Found = Counter()
    made = Nights(model, seed)
    runs = [made.next() for _ in range(31)]
    rng = np.random.default_rng(seed)
    for name, (above, below) in CLASSES.items():
        case = made.cases[rng.choice(np.flatnonzero((made.base >= above) & (made.base < below)))]
        for size in sizes:
            for nights in (WARM, 30) if size in (0.02, 0.03) else (WARM,):
                asked = f"{size:.0%} in {name} after {nights} nights"
                result[asked, "yes"] += slower(last(runs[:nights], slowed(runs[nights], {case: size})), case)
                result[asked, "of"] += 1
        bad = [*runs[:4], slowed(runs[4], {case: 0.1}), *runs[5:WARM]]
        asked = f"5% in {name} after a bad night"
        result[asked, "yes"] += slower(last(bad, slowed(runs[WARM], {case: 0.05})), case)
        result[asked, "of"] += 1
    return result


def lasting(
    model: Model,
    seed: int,
    sizes: Mapping[float, Sequence[int]] = MappingProxyType({0.02: (1, 2, 3), 0.03: ALL, 0.1: (1, 14)}),
) -> Found:
    """A step in one case of 30 µs to 30 ms, on some of the nights since, counted from 1."""
    result: Found = Counter()
    made = Nights(model, seed)
    runs = [made.next() for _ in range(WARM + HELD)]
    case = made.cases[np.random.default_rng(seed).choice(np.flatnonzero((made.base >= 0.03) & (made.base < 30.0)))]
    for size, nights in sizes.items():
        after = [slowed(run, {case: size}) for run in runs[WARM:]]
        seen = [slower(last([*runs[:WARM], *after[: night - 1]], after[night - 1]), case) for night in nights]
        _note_held(result, f"held {size:.0%}", nights, seen)
    return result


def together(
    model: Model,
    seed: int,
    sizes: Mapping[float, Sequence[int]] = MappingProxyType(
        {0.01: (1, 14), 0.015: (1, 2, 3, 4, 7, 10, 14), 0.02: (1, 14)}
    ),
) -> Found:
    """A step in all cases by a lower clock, which the rows record: whether a night says that any of them is slower."""
    result: Found = Counter()
    made = Nights(model, seed)
    runs = [made.next() for _ in range(WARM + HELD)]
    for size, nights in sizes.items():
        after = [clocked(slowed(run, dict.fromkeys(made.cases, size)), 1 / (1 + size)) for run in runs[WARM:]]
        seen = [bool(last([*runs[:WARM], *after[: night - 1]], after[night - 1]).regressions) for night in nights]
        _note_held(result, f"all {100 * size:g}% slower", nights, seen)
    return result


def _note_held(result: Found, asked: str, nights: Sequence[int], seen: Sequence[bool]) -> None:
    for night, yes in zip(nights, seen, strict=True):
        result[f"{asked}: night {night:02}", "yes"] += yes
        result[f"{asked}: night {night:02}", "of"] += 1
    if tuple(nights[:3]) == (1, 2, 3):
        result[f"{asked}: one of nights 1 to 3", "yes"] += any(seen[:3])
        result[f"{asked}: one of nights 1 to 3", "of"] += 1


def again(model: Model, seed: int) -> Found:
    """One case 10 % slower for five nights, repaired for five, and again; each time on the first and the last night."""
    result: Found = Counter()
    made = Nights(model, seed)
    runs = [made.next() for _ in range(WARM + 25)]
    case = made.cases[np.random.default_rng(seed).choice(np.flatnonzero((made.base >= 0.03) & (made.base < 30.0)))]
    shown = [
        slowed(run, {case: 0.1}) if night >= WARM and (night - WARM) // 5 % 2 == 0 else run
        for night, run in enumerate(runs)
    ]
    for time, first in enumerate(range(WARM, len(runs), 10), start=1):
        for night in (first, first + 4):
            result[f"10% for five nights, repaired, again: time {time}", "yes"] += slower(
                last(shown[:night], shown[night]), case
            )
            result[f"10% for five nights, repaired, again: time {time}", "of"] += 1
    return result


def _tasks(seeds: Iterable[int]) -> Iterator[tuple[str, Callable[[], Found]]]:
    for seed in seeds:
        for name, model in MODELS.items():
            yield name, partial(unchanged, model, 61000 + seed, SEASON if model.season else NIGHTS)
        for name in ("N0", "N1p") if seed % 2 == 0 else ():
            yield name, partial(noisy, MODELS[name], 64000 + seed)
            yield name, partial(lasting, MODELS[name], 63000 + seed)
            yield name, partial(together, MODELS[name], 65000 + seed)
            if seed % 4 == 0:
                yield name, partial(again, MODELS[name], 66000 + seed)
                yield name, partial(seen, MODELS[name], 62000 + seed)


def _worker() -> None:
    """Keep what verdicts after the first would do again: a run's times, and that runs of a series are comparable."""
    kept: dict[int, tuple[Run, dict[str, list[pairing.Timed]]]] = {}
    once = pairing.timed

    def timed(run: Run) -> dict[str, list[pairing.Timed]]:
        if len(kept) > KEPT:
            kept.clear()
        if id(run) not in kept:
            kept[id(run)] = run, once(run)
        return kept[id(run)][1]

    patch.multiple(pairing, timed=timed, device_reason=lambda *_: "", not_the_same_case=lambda *_: "").start()


def main(path: Path, series: int = 40, first: int = 0) -> None:
    """Run the study on two cores; the table grows as series end, after the first one also that of an earlier study."""
    totals: dict[str, Found] = {name: Counter() for name in MODELS}
    if first:
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            totals[row["model"]] += Counter({(row["asked"], what): int(row[what]) for what in ("yes", "of")})
    with ProcessPoolExecutor(2, initializer=_worker) as pool:
        running = {pool.submit(task): name for name, task in _tasks(range(first, series))}
        for future in as_completed(running):
            totals[running[future]] += future.result()
            path.write_text(table(totals), encoding="utf-8")


def table(totals: Mapping[str, Found]) -> str:
    """The counts as CSV."""
    asked = [(name, what) for name, result in totals.items() for what in sorted({what for what, _ in result})]
    counts = [(name, what, totals[name][what, "yes"], totals[name][what, "of"]) for name, what in asked]
    records = [[name, what, str(yes), str(of), f"{yes / max(of, 1):.4f}"] for name, what, yes, of in counts]
    return table_text(("model", "asked", "yes", "of", "share"), records)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
