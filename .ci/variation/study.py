"""What the verdict makes of simulated fleets: ``PYTHONPATH=.:.ci python -m variation.study FILE.csv [EFFORT]``.

An effort of 1 takes two idle cores some ten minutes. Seeds are fixed, and nothing was tuned on them.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from smembench.stats.noise import Floats, discovery_rates
from smembench.stats.outliers import Flags, outliers
from smembench.store.csv_files import table_text
from smembench.studies.fleet.verdict import RULES
from variation.simulator import METRICS, MODELS, edge, measured, simulated

QUIET = {8: 1200, 64: 200, 1024: 16}
"""Simulated fleets of normal GPUs by their number of GPUs."""
SLOW = {8: 160, 64: 80, 1024: 6}
"""Simulated fleets with one slow GPU, or one in 64."""
SIZES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)
QUESTIONS = 2 * METRICS
"""As if every GPU had earlier runs, which is the harder case."""
LEVEL = RULES.false_alarms / QUESTIONS
EDGE = RULES.false_alarms / METRICS
"""Share of normal GPUs beyond the edge of the normal variation of a metric."""

_PARTS = 4

Found = Counter[tuple[str, str]]
"""How often something happened, by what was asked and "yes" or "of"."""


@dataclass(frozen=True, slots=True)
class Task:
    """Fleets of one model and size: how many are of normal GPUs, and how many have slow ones."""

    model: str
    count: int
    quiet: int
    slow: int
    seed: int
    sizes: Sequence[float] = SIZES


def study(task: Task) -> Found:
    """False alarms, and which GPUs are found that are slow in all metrics or in one: by so much, or beyond the edge."""
    result: Found = Counter()
    model, rng = MODELS[task.model], np.random.default_rng([task.seed, task.count])
    for _ in range(task.quiet):
        fleet = simulated(model, task.count, rng)
        named = np.asarray(np.any(_named(*measured(fleet, rng))[:, fleet.normal], axis=0))
        note(result, "false alarms", named.tolist())
        note(result, "fleets with a false alarm", [bool(named.any())])
    beyond = edge(model, EDGE)
    power, memory = 0, METRICS - 1
    for _ in range(task.slow):
        fleet = simulated(model, task.count, rng)
        times, noise = measured(fleet, rng)
        bad = np.flatnonzero(fleet.normal)[: max(task.count // 64, 1)]
        for size in task.sizes:
            step, everywhere = math.log1p(size), times.copy()
            everywhere[:, bad] += step
            named = np.asarray(np.any(_named(everywhere, noise)[:, bad], axis=0))
            note(result, f"{size:.1%} slower in all metrics", named.tolist())
            for what, metric in (("a metric limited by power", power), ("a metric of memory", memory)):
                to_edge = beyond[metric] - fleet.times[metric, bad]
                for where, more in (("slower in", step), ("beyond the edge in", step + to_edge)):
                    somewhere = times.copy()
                    somewhere[metric, bad] += more
                    note(result, f"{size:.1%} {where} {what}", _named(somewhere, noise)[metric, bad].tolist())
    return result


def _named(times: Floats, noise: Floats) -> Flags:
    """Which figures are called slow, shape (metrics, GPUs); nothing is seen in earlier runs."""
    result = outliers(times, noise, math.log1p(RULES.threshold), LEVEL)
    asked = np.vstack([result.p, np.ones((QUESTIONS - METRICS, times.shape[1]))])
    adjusted = np.apply_along_axis(discovery_rates, 0, asked)[:METRICS]
    return np.asarray(adjusted <= RULES.false_alarms)


def note(result: Found, asked: str, answers: Sequence[bool]) -> None:
    """Count answers."""
    result[asked, "yes"] += sum(answers)
    result[asked, "of"] += len(answers)


def tasks(effort: float) -> Iterator[Task]:
    """All models and sizes, in parts."""
    for count, model, part in product(QUIET, MODELS, range(_PARTS)):
        quiet, slow = (max(round(effort * fleets[count] / _PARTS), 1) for fleets in (QUIET, SLOW))
        yield Task(model, count, quiet, slow, 5000 + part)


def table(totals: dict[tuple[str, int], Found]) -> str:
    """The counts as CSV."""
    records = []
    for (model, count), result in totals.items():
        for what in dict.fromkeys(what for what, _ in result):
            yes, of = result[what, "yes"], result[what, "of"]
            records.append([model, str(count), what, str(yes), str(of), f"{yes / of:.5f}"])
    return table_text(("model", "gpus", "asked", "yes", "of", "share"), records)


def main(path: Path, effort: float) -> None:
    """Run the study on two cores."""
    planned = list(tasks(effort))
    totals: dict[tuple[str, int], Found] = {}
    with ProcessPoolExecutor(2) as pool:
        for task, result in zip(planned, pool.map(study, planned), strict=True):
            totals.setdefault((task.model, task.count), Counter()).update(result)
    path.write_text(table(totals), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
