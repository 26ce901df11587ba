"""The ladder as tables: what each step changes, its gain over the best step before it, and its share of the limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import ENGINES
from smembench.model.clauses import time
from smembench.model.groups import grouped
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.ladder.climb import Rung, ceiling, climb, steps
from smembench.views.columns import figures, number, ratio_text, value
from smembench.views.sections import Section, bars, describe, label, notes, subject, table
from smembench.views.sentences import compared


def ladder(run: Run) -> list[Section]:
    """The sections of a run's ladders."""
    return [section for part in ladders(run) for section in sections(part)]


def ladders(run: Run) -> list[Run]:
    """The rows with a step of a ladder, by ``Case.setting``.

    Only steps, the ceiling and other libraries are in them.
    """
    beside = grouped(filter(_beside, run.rows), lambda row: row.case.setting)
    climbed = grouped(filter(_is_step, run.rows), lambda row: row.case.setting)
    return [run.only([*group, *beside.get(setting, ())]) for setting, group in climbed.items()]


def _beside(row: Row) -> str:
    """The role of a row beside the steps: the ceiling, or another library's summary; else ""."""
    if row.kernel == PROBLEMS[row.problem].ceiling_kernel:
        return "the ceiling"
    kernel = registry.find(row.problem, row.kernel, row.case.kind, row.compiler)
    return kernel.summary if kernel and kernel.peer else ""


def _is_step(row: Row) -> bool:
    return row.compiler in ENGINES and row.kernel in {step.name for step in steps(row.problem, row.case.kind, rows=0)}


def sections(run: Run) -> list[Section]:
    """The ladder of rows of one setting; steps that lose against the best one before them have a table of their own."""
    rows = run.rows
    limit = ceiling(rows[0].problem)
    rungs = climb(run)
    beside = {row: ("", _beside(row)) for row in rows if row.ok and _beside(row)}
    gained, lost = (
        {rung.row: (gain(rung), rung.kernel.ladder) for rung in rungs if rung.loses is loses} for loses in (False, True)
    )
    rate = PROBLEMS[rows[0].problem].texts.columns[0]
    first = _table(run, describe(run), gained | beside).below(
        bars=bars([*gained, *beside], rate), sentence=_sentence(run, rungs, limit), notes=notes(rows)
    )
    return [first, _table(run, f"{subject(rows[0])}: steps that lose", lost)] if lost else [first]


def _table(run: Run, heading: str, texts: Mapping[Row, tuple[str, str]]) -> Section:
    problem = PROBLEMS[run.rows[0].problem]
    rate, limit = problem.texts.columns[0], ceiling(problem.name)
    limited = [limit] if any(value(row, limit) is not None for row in run.rows) else []
    return table(
        heading,
        texts,
        {
            "step": label,
            **figures(problem, ["elapsed_ms", rate, *limited], run.rows),
            "gain": lambda row: texts[row][0].replace(" ", "\n", 1),
            "what changes": lambda row: texts[row][1],
        },
        words=("step", "what changes"),
    )


def gain(rung: Rung) -> str:
    """``1.79 ±0.4 %``, in brackets if it is within the noise; "" for the lowest rung."""
    if rung.gain is None:
        return ""
    text = ratio_text(rung.gain)
    return text if rung.gain.differs else f"({text})"


def _sentence(run: Run, rungs: Sequence[Rung], limit: str) -> str:
    """The gain over the whole ladder, and the fastest rung's share of the limit."""
    if not rungs:
        return ""
    lowest, best = rungs[0].row, min((rung.row for rung in rungs), key=time)
    clauses = [f"The fastest step is {label(best)}"]
    if best is not lowest:
        clauses.append(compared(run, best, lowest, label(lowest)))
    if (share := value(best, limit)) is not None:
        problem = PROBLEMS[best.problem]
        clauses.append(f"at {number(share)} % of {problem.ceiling_kernel or f'the peak of {problem.bound}'}")
    text = f"{', '.join(clauses)}. Each step is shown with its fastest block"
    within = any(rung.gain is not None and not rung.gain.differs for rung in rungs)
    return f"{text}; gains in brackets are within the noise." if within else f"{text}."
