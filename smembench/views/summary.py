"""Summary of a run: what was measured, a finding per problem, and the fastest kernel at each size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from shlex import quote

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.text import capital, number_of
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.break_even import tables, where_it_pays
from smembench.views.columns import ratio_text, times_text
from smembench.views.families import Family, families
from smembench.views.limits import limits
from smembench.views.sections import Section, device_names, groups, labels, subject
from smembench.views.sentences import sentence
from smembench.views.sustained import sustained

_SCREEN, _AROUND = 60, 5
"""Most lines of the tables of a run that is shown whole, and how many each has besides its cases."""
_FINDINGS, _FAILED = 3, 3
"""Most findings of a summary, and most failed cases that it names."""
_LINES = 12
"""Most sizes in a table of a summary."""


def brief(run: Run, case: str | None = None) -> list[Section]:
    """The only table of a run, or all that fit a screen, else its summary; ``case`` is the pattern of its cases."""
    count = len(groups(run.rows))
    return tables(run) if count == 1 or len(run.rows) + count * _AROUND <= _SCREEN else summary(run, case)


def summary(run: Run, case: str | None = None) -> list[Section]:
    """The measured cases and their reliability, findings, and the fastest kernel at each size."""
    named = zip(labels(run.rows), run.rows, strict=True)
    failed = [f"{name}: {row.status}: {row.reason}" for name, row in named if row in run.failed]
    more = [f"{len(failed) - _FAILED} more failed"] if len(failed) > _FAILED else []
    first = Section(
        f"{title([run])} · {facts([run])}", (), (), sentence=capital(trust(run)), notes=failed[:_FAILED] + more
    )
    headlines = [Section(heading, (), (), sentence=text) for heading, text in findings(run)[:_FINDINGS]]
    best = [section for section in limits(run, most=_LINES) if len(section.cells) > 1]
    several = number_of(len(groups(run.rows)), "table")
    command = f"smembench show {quote(str(run.path))}{f' --case {quote(case)}' if case else ''} --tables"
    rest = [Section("", (), (), sentence=f"All {several}: {command}")] if run.path else []
    return [first, *headlines, *best, *sustained(run), *where_it_pays(run), *rest]


def title(runs: Sequence[Run]) -> str:
    """The devices and the config of runs: ``NVIDIA H200: nightly``."""
    devices = dict.fromkeys(gpus(run) for run in runs if run.rows)
    names = dict.fromkeys(run.description.config.name or "" for run in runs)
    config = next(iter(names)) if len(names) == 1 else ""
    return ": ".join(filter(None, (", ".join(devices), config)))


def gpus(run: Run) -> str:
    """The devices of a run, without the CPU if it has others."""
    return device_names(run.only([row for row in run.rows if row.device != "cpu"] or run.rows))


def facts(runs: Sequence[Run]) -> str:
    """The days, the number of runs and of cases, and the problems."""
    days = list(dict.fromkeys(f"{run.began:%Y-%m-%d}" for run in runs if run.began.year > 1))
    rows = [row for run in runs for row in run.rows]
    *titles, last = dict.fromkeys(PROBLEMS[row.problem].texts.title for row in rows)
    problems = f"{', '.join(titles)} and {last}" if titles else last
    many = f"{len(runs)} runs" if len(runs) > 1 else ""
    own = {(row.case_id, run.description.identity(row.device)) for run in runs for row in run.rows}
    cases = f"{number_of(len(own), 'case')} of {problems}"
    return " · ".join(filter(None, (" to ".join(dict.fromkeys((days or [""])[:1] + days[-1:])), many, cases)))


def findings(run: Run) -> list[tuple[str, str]]:
    """A heading and a sentence per problem, those with the most cases first.

    Beside other libraries it says how fast the fastest kernels are, else what the kernels of the usual size gain.
    """
    limited = beside_libraries(run)
    results = []
    for problem, _ in Counter(row.problem for row in run.rows if row.ok).most_common():
        of_problem = sorted((group for group in groups(run.rows) if group[0].problem == problem), key=usual)
        texts = [
            (f"{family.problem.texts.title} {family.first.dtype}", _beside(family))
            for family in limited
            if family.problem is PROBLEMS[problem]
        ]
        texts += [(subject(rows[0]), sentence(run.only(rows))) for rows in of_problem]
        results += [(capital(heading), text) for heading, text in texts if text][:1]
    return results


def usual(rows: Sequence[Row]) -> tuple[int, bool, int, bool, int]:
    """Sorts groups: the most kernels first, then the usual size, dtype and cache mode, then the largest."""
    row, problem = rows[0], PROBLEMS[rows[0].problem]
    kernels = {row.kernel for row in rows if row.device != "cpu"}
    order = problem.dtypes.index(row.dtype) if row.dtype in problem.dtypes else len(problem.dtypes)
    return -len(kernels), row.n != problem.default_n, order, row.cache != "warm", -row.bytes


def beside_libraries(run: Run) -> list[Family]:
    """The families in which other libraries' kernels were measured as well."""
    return [
        family
        for family in families(run)
        if {kernel for kernel, _ in family.best} & set(registry.peers(family.first.problem))
    ]


def _beside(family: Family) -> str:
    rows = family.fastest
    if not rows:
        return ""
    ratios = sorted(speed for row in rows if (speed := family.ratio(row)))
    ((kernel, often),) = Counter(row.kernel for row in rows).most_common(1)
    if len(rows) == 1:
        return f"The fastest kernel, {kernel}, runs at {times_text(ratios[0])} the speed of {family.beside}."
    where = "all" if often == len(rows) else str(often)
    return (
        f"The fastest kernel runs at {ratio_text(ratios[0])} to {ratio_text(ratios[-1])} of the speed of "
        f"{family.beside} at {len(rows)} sizes; at {where} of them it is {kernel}."
    )


def trust(run: Run) -> str:
    """The reliability of the times."""
    done = [row for row in run.rows if row.ok]
    checked = [row for row in done if row.verified]
    counts = {
        "not checked": len(done) - len(checked) if checked else 0,
        "failed": len(run.failed),
        "skipped": sum(row.status == "skipped" for row in run.rows),
        "did not converge": sum(row.converged is False for row in done),
        "disturbed by a throttling GPU or a busy host, so upper bounds": sum(row.disturbed for row in done),
    }
    parts = [f"{count} {what}" for what, count in counts.items() if count]
    every = "all " if len(checked) == len(run.rows) > 1 else ""
    outputs = f"the outputs of {every}{number_of(len(checked), 'case')} were checked before timing"
    return f"{outputs if checked else 'no output was checked'}; {', '.join(parts) or 'all times converged'}."
