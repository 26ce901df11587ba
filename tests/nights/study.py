"""What the verdicts make of simulated nights: ``PYTHONPATH=.:tests python -m nights.study FILE.csv [SERIES]``.

Each series is a GPU of its own with 22 nights, of which the first seven are only compared with. Twenty series make 300
nights per model and take two idle cores some twelve minutes.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from nights.simulator import MODELS, Model, Nights
from smembench.store.csv_files import table_text
from smembench.store.run import Run
from smembench.studies.compare import Comparison, Rules, Verdict, compare_runs
from smembench.studies.nightly.last import compare_with_last

WARM, NIGHTS = 7, 15
CLASSES = {"under 10 µs": (0.0, 0.01), "30 to 300 µs": (0.03, 0.3), "0.3 to 30 ms": (0.3, 30.0)}
"""Durations in ms of the cases that are made slower."""
SIZES = (0.02, 0.03, 0.05, 0.1)
HELD = 14
"""Nights after a step."""

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


def told(found: Comparison, case: str) -> bool:
    """Whether a case is slower."""
    return any(slower.case.id == case for slower in found.regressions)


def note(found: Found, asked: str, comparison: Comparison) -> None:
    """Count a night in which nothing changed."""
    changed = sum(case.verdict in (Verdict.SLOWER, Verdict.FASTER) for case in comparison.cases)
    covered = [case.low <= 1 <= case.high for case in comparison.cases if case.low and case.high]
    for what, yes, of in (
        ("false nights", bool(comparison.regressions), 1),
        ("false cases", changed, len(comparison.cases)),
        ("covered", sum(covered), len(covered)),
    ):
        found[f"{asked}: {what}", "yes"] += yes
        found[f"{asked}: {what}", "of"] += of


def unchanged(model: Model, seed: int, nights: int = NIGHTS) -> Found:
    """Nights in which nothing changed, by ``last:7``, ``last:3``, one pair with others beside it, and one alone."""
    found: Found = Counter()
    made = Nights(model, seed)
    runs = [made.next() for _ in range(WARM + nights)]
    for place in range(WARM, len(runs)):
        before, new = runs[:place], runs[place]
        note(found, "last:7", last(before, new))
        if place % 3 == 0:
            note(found, "last:1", last(before, new, 1))
            note(found, "last:3", last(before, new, 3))
            note(found, "A B alone", compare_runs(before[-1:], [new]))
            note(found, "A B", compare_runs(before[-1:], [new], beside=before[-11:-1]))
    return found


def noisy(model: Model, seed: int, nights: int = 4) -> Found:
    """Nights whose rounds are noisier."""
    found: Found = Counter()
    made = Nights(model, seed)
    before = [made.next() for _ in range(WARM)]
    for by, _ in product((0.01, 0.02), range(nights)):
        note(found, f"rounds {by:.0%} noisier", last(before, made.next(noisier=by)))
    return found


def seen(model: Model, seed: int, sizes: Sequence[float] = SIZES) -> Found:
    """One case slower, on its first night: after seven nights, after thirty, and after one bad night of it."""
    found: Found = Counter()
    made = Nights(model, seed)
    runs = [made.next() for _ in range(31)]
    rng = np.random.default_rng(seed)
    for name, (above, below) in CLASSES.items():
        case = made.cases[rng.choice(np.flatnonzero((made.base >= above) & (made.base < below)))]
        for size in sizes:
            for nights in (WARM, 30) if size in (0.02, 0.03) else (WARM,):
                asked = f"{size:.0%} in {name} after {nights} nights"
                found[asked, "yes"] += told(last(runs[:nights], slowed(runs[nights], {case: size})), case)
                found[asked, "of"] += 1
        bad = [*runs[:4], slowed(runs[4], {case: 0.05}), *runs[5:WARM]]
        asked = f"5% in {name} after a bad night"
        found[asked, "yes"] += told(last(bad, slowed(runs[WARM], {case: 0.05})), case)
        found[asked, "of"] += 1
    return found


def held(model: Model, seed: int, nights: int = HELD, sizes: Sequence[float] = (0.03, 0.05, 0.1)) -> Found:
    """A step in one case of 30 µs to 30 ms, night after night."""
    found: Found = Counter()
    made = Nights(model, seed)
    runs = [made.next() for _ in range(WARM + nights)]
    case = made.cases[np.random.default_rng(seed).choice(np.flatnonzero((made.base >= 0.03) & (made.base < 30.0)))]
    for size in sizes:
        after = [slowed(run, {case: size}) for run in runs[WARM:]]
        for night, new in enumerate(after):
            which = "night 1" if night == 0 else "nights 2 to 3" if night < 3 else f"nights 4 to {HELD}"
            asked = f"held {size:.0%} {which}"
            found[asked, "yes"] += told(last([*runs[:WARM], *after[:night]], new), case)
            found[asked, "of"] += 1
    return found


def together(model: Model, seed: int, sizes: Sequence[float] = (0.01, 0.02, 0.03)) -> Found:
    """A step in all cases by a lower clock, which the rows record: whether a night says that any of them is slower."""
    found: Found = Counter()
    made = Nights(model, seed)
    runs = [made.next() for _ in range(WARM + HELD)]
    for size in sizes:
        after = [clocked(slowed(run, dict.fromkeys(made.cases, size)), 1 / (1 + size)) for run in runs[WARM:]]
        for night in (0, 3, 8, HELD - 1):
            asked = f"all {size:.0%} slower " + ("night 1" if night == 0 else f"nights 4 to {HELD}")
            found[asked, "yes"] += bool(last([*runs[:WARM], *after[:night]], after[night]).regressions)
            found[asked, "of"] += 1
    return found


def _tasks(series: int) -> Iterator[tuple[str, Callable[[], Found]]]:
    for seed in range(series):
        for name, model in MODELS.items():
            yield name, partial(unchanged, model, 11000 + seed)
        for name in ("N0", "N1p", "N3"):
            yield name, partial(together, MODELS[name], 15000 + seed)
        for name in ("N0", "N1p"):
            yield name, partial(held, MODELS[name], 13000 + seed)
            if name == "N1p":  # the nearest to what is asked
                for more in (1, 2):
                    yield name, partial(held, MODELS[name], 13000 + more * series + seed, sizes=(0.03,))
            for part in range(2):
                yield name, partial(seen, MODELS[name], 12000 + 2 * seed + part)
                yield name, partial(noisy, MODELS[name], 14000 + 2 * seed + part)


def main(path: Path, series: int) -> None:
    """Run the study on two cores; the table grows as series end."""
    totals: dict[str, Found] = {name: Counter() for name in MODELS}
    with ProcessPoolExecutor(2) as pool:
        running = {pool.submit(task): name for name, task in _tasks(series)}
        for future in as_completed(running):
            totals[running[future]] += future.result()
            path.write_text(table(totals), encoding="utf-8")


def table(totals: Mapping[str, Found]) -> str:
    """The counts as CSV."""
    asked = [(name, what) for name, found in totals.items() for what in sorted({what for what, _ in found})]
    counts = [(name, what, totals[name][what, "yes"], totals[name][what, "of"]) for name, what in asked]
    records = [[name, what, str(yes), str(of), f"{yes / max(of, 1):.4f}"] for name, what, yes, of in counts]
    return table_text(("model", "asked", "yes", "of", "share"), records)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20)
