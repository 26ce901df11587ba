"""The table of ``smembench tune``: the finalists, and whether the fastest is beyond the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.kernels.time.problem import PROBLEM as TIME
from smembench.model.clauses import time
from smembench.model.text import number_of
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.store.schema import Row
from smembench.studies.difference import tells_apart
from smembench.studies.tune import ALLOWED, Search, Tuned
from smembench.views.columns import figures, within
from smembench.views.export import Result, cases
from smembench.views.sections import Section, bars, cautions, interval, label, table
from smembench.views.sustained import energy


def ranked(tuned: Tuned) -> Run:
    """The finalists of a search as a run, the smallest median first, or the least energy."""
    run = Run.of(Description(), tuned.measurements)
    wanted = {case.id for case in tuned.finalists}
    shown = [row for row in run.rows if row.ok and row.case_id in wanted]
    by_energy = tuned.objective == "energy"
    return run.only(sorted(shown, key=(lambda row: row.energy_mj or math.inf) if by_energy else time))


def result(tuned: Tuned, among: str = "") -> Result:
    """The finalists' table and cases."""
    run = ranked(tuned)
    return Result(sections=[finals(tuned, among)], data=lambda: {"cases": cases(run)}, rows=lambda: cases(run))


def finals(tuned: Tuned, among: str = "") -> Section:
    """Finalists by their median, with its 95 % interval, and what casts doubt on it.

    ``among`` says what a search that was interrupted has instead of finalists.
    """
    run = ranked(tuned)
    what = "candidate" if among else "finalist"
    rows, best, problem = run.rows, tuned.best, PROBLEMS[tuned.best.problem]
    columns = {
        what: _label,
        "elapsed ms": lambda row: within(row.elapsed_ms, row.interval),
        "95 % CI": interval,
        **figures(problem, problem.texts.columns, rows),
        "mJ per launch": energy,
    }
    sentence = least_energy(rows) if tuned.objective == "energy" else verdict(run, rows)
    return table(
        f"{problem.texts.title} {problem.texts.size(best)} {best.dtype} on {best.device}: {among or 'the finalists'}",
        rows,
        {name: text for name, text in columns.items() if any(map(text, rows))},
        words=(what,),
    ).below(bars=bars(rows, problem.texts.columns[0]), sentence="" if among else sentence, notes=cautions(rows))


def counts(search: Search) -> str:
    """The number of candidates, and the numbers ruled out with the reasons."""
    candidates = number_of(len(search.cases), "candidate")
    if search.cases and search.cases[0].launch is not None:
        return f"{candidates}; ruled out by --where: {search.over_limits}"
    return (
        f"{candidates}; ruled out: {search.over_limits} over a block's limits, "
        f"{search.predicted_slow} predicted to need over {ALLOWED:g} times the least traffic"
    )


def _label(row: Row) -> str:
    """The kernel with its block and pad; of a launch of the user's with the values that were tuned, too."""
    values = [f"{name}={value}" for name, value in row.parameters] if row.problem == TIME.name else []
    return " ".join([label(row), *values])


def least_energy(rows: Sequence[Row]) -> str:
    """A sentence: whether the first of a run's finalists takes less energy than the others, beyond their intervals."""

    def ends(row: Row) -> tuple[float, float]:
        value, within = row.energy_mj or math.inf, row.energy_uncertainty or 1.0
        return value * (1 - within), value * (1 + within)

    best, *others = rows
    level = [_label(row) for row in others if ends(row)[0] <= ends(best)[1]]
    if not level:
        return f"{_label(best)} takes the least energy per launch, beyond its interval."
    return f"{_label(best)} takes the least energy per launch, but its interval reaches that of {', '.join(level)}."


def verdict(run: Run, rows: Sequence[Row]) -> str:
    """A sentence: whether the fastest of a run's finalists, given fastest first, is faster beyond the noise."""
    level = [_label(row) for row in rows[1:] if not tells_apart(run, rows[0], row)]
    if not level:
        return f"{_label(rows[0])} is the fastest, beyond the noise."
    return f"{_label(rows[0])} has the smallest median, but does not differ from {', '.join(level)} beyond the noise."
