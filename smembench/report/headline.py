"""The first screen of a report: what was measured on what and when, at most three sentences, and one chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.text import capital, number_of
from smembench.report.charts import Chart
from smembench.report.figures.sizes import Family, best_over_sizes, families
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.columns import times
from smembench.views.sections import device_names, groups, subject
from smembench.views.sentences import sentence


@dataclass(frozen=True, slots=True)
class Headline:
    """The first screen: a title, a line of facts, at most three sentences, and a chart if there is one."""

    title: str
    facts: str
    sentences: Sequence[str]
    chart: Chart | None


def headline(runs: Sequence[Run], moved: Sequence[str], charts: Sequence[Chart]) -> Headline:
    """The first screen of a report.

    Args:
        runs: oldest first; what the newest shows is told.
        moved: sentences about what changed between runs, the first of which comes first.
        charts: all others of the report, the most important first; the first one is shown if no limit was measured.
    """
    newest = next(run for run in reversed(runs) if run.rows)
    limited = [] if moved else [family for family in families(newest.rows) if _libraries(family)]
    found = [chart for family in limited if (chart := best_over_sizes(family))]
    told = [*moved[:1], *_results(newest, limited)][:2]
    return Headline(
        _title(runs),
        _facts(runs),
        [*told, f"In the newest run, {_trust(newest)}" if len(runs) > 1 else capital(_trust(newest))],
        next(iter([*found, *charts]), None),
    )


def _title(runs: Sequence[Run]) -> str:
    devices = dict.fromkeys(gpus(run) for run in runs if run.rows)
    names = dict.fromkeys(run.description.config.name or "" for run in runs)
    config = next(iter(names)) if len(names) == 1 else ""
    return ": ".join(filter(None, (", ".join(devices), config)))


def gpus(run: Run) -> str:
    """The devices of a run, without the CPU if it has others."""
    return device_names(run.only([row for row in run.rows if row.device != "cpu"] or run.rows))


def _facts(runs: Sequence[Run]) -> str:
    days = list(dict.fromkeys(f"{run.began:%Y-%m-%d}" for run in runs if run.began.year > 1))
    rows = [row for run in runs for row in run.rows]
    *titles, last = dict.fromkeys(PROBLEMS[row.problem].texts.title for row in rows)
    problems = f"{', '.join(titles)} and {last}" if titles else last
    many = f"{len(runs)} runs" if len(runs) > 1 else ""
    own = {(row.case_id, run.description.identity(row.device)) for run in runs for row in run.rows}
    cases = f"{number_of(len(own), 'case')} of {problems}"
    return " · ".join(filter(None, (" to ".join(dict.fromkeys((days or [""])[:1] + days[-1:])), many, cases)))


def _results(run: Run, limited: Sequence[Family]) -> list[str]:
    """A sentence per problem, those with the most cases first: beside other libraries, else what the kernels gain."""
    found = []
    for problem, _ in Counter(row.problem for row in run.rows if row.ok).most_common():
        of_problem = sorted((group for group in groups(run.rows) if group[0].problem == problem), key=usual)
        told = [_beside(family) for family in limited if family.problem is PROBLEMS[problem]]
        told += [f"{subject(rows[0])}: {text}" for rows in of_problem if (text := sentence(run.only(rows)))]
        found += [capital(text) for text in filter(None, told)][:1]
    return found


def usual(rows: Sequence[Row]) -> tuple[int, bool, int, bool, int]:
    """Sorts groups: the most kernels first, then the usual size, dtype and cache mode, then the largest."""
    row, problem = rows[0], PROBLEMS[rows[0].problem]
    kernels = {row.kernel for row in rows if row.device != "cpu"}
    order = problem.dtypes.index(row.dtype) if row.dtype in problem.dtypes else len(problem.dtypes)
    return -len(kernels), row.n != problem.default_n, order, row.cache != "warm", -row.bytes


def _beside(family: Family) -> str:
    rows = family.fastest
    if not rows:
        return ""
    ratios = [family.ratio(row) or 0.0 for row in rows]
    ((kernel, often),) = Counter(row.kernel for row in rows).most_common(1)
    where = "all" if often == len(rows) else str(often)
    return (
        f"{family.problem.texts.title} {rows[0].dtype}: the fastest kernel runs at {times(min(ratios))[:-1]} to "
        f"{times(max(ratios))} the speed of {family.beside} at {len(rows)} sizes; at {where} of them it is {kernel}."
    )


def _libraries(family: Family) -> bool:
    """Whether other libraries' kernels were measured beside a family's."""
    return bool({kernel for kernel, _ in family.best} & set(registry.peers(family.first.problem)))


def _trust(run: Run) -> str:
    """How far the times can be trusted."""
    done = [row for row in run.rows if row.ok]
    counts = {
        "failed": len(run.failed),
        "skipped": sum(row.status == "skipped" for row in run.rows),
        "did not converge": sum(row.converged is False for row in done),
        "disturbed by a throttling GPU or a busy host, so upper bounds": sum(row.disturbed for row in done),
    }
    said = [f"{count} {what}" for what, count in counts.items() if count]
    every = "all " if len(done) == len(run.rows) > 1 else ""
    checked = f"the outputs of {every}{number_of(len(done), 'case')} were checked before timing"
    return f"{checked}; {', '.join(said) or 'all times converged'}."
