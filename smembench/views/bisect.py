"""A search for a commit as a table of the commits measured, the answer as a sentence, and both for programs."""

from __future__ import annotations

from collections.abc import Callable

from smembench.model.errors import INCOMPARABLE
from smembench.stats.summary import centre
from smembench.studies.bisect.run import Bisected
from smembench.studies.bisect.search import effect, units
from smembench.views.columns import milliseconds, some
from smembench.views.compare import namer
from smembench.views.export import Result
from smembench.views.records import Record
from smembench.views.sections import Section, table

_SHORT = 10


def records(bisected: Bisected) -> list[Record]:
    """A record per commit that was measured or skipped, in their order; ratios are to the good one."""
    state, measured, cases = bisected.state, bisected.measured, bisected.result.cases or bisected.state.cases
    culprits = {after for _, after in bisected.result.culprits}
    rows: list[Record] = []
    for commit in sorted({*measured.times, *state.skipped}):
        if commit in measured.times and commit not in state.skipped:
            of_good = effect(measured, 0, commit, cases, bisected.rules) if commit else None
            figures = {
                "rounds": measured.rounds(commit),
                "elapsed_ms": centre(units(measured, commit, cases)),
                "ratio": of_good.ratio if of_good else 1.0,
                "low": of_good.low if of_good else None,
                "high": of_good.high if of_good else None,
            }
        else:
            figures = dict.fromkeys(("rounds", "elapsed_ms", "ratio", "low", "high"))
        verdict = "good" if commit == 0 else "first slower" if commit in culprits else state.skipped.get(commit, "")
        rows.append({"commit": state.commits[commit], "subject": state.subjects[commit], **figures, "verdict": verdict})
    return rows


def section(bisected: Bisected) -> Section:
    """The table, with the answer below it."""
    cells: dict[str, Callable[[Record], str]] = {
        "commit": lambda row: str(row["commit"])[:_SHORT],
        "rounds": lambda row: "" if row["rounds"] is None else str(row["rounds"]),
        "ms": lambda row: milliseconds(_number(row["elapsed_ms"])),
        "ratio": lambda row: "" if row["ratio"] is None else f"{row['ratio']:.3f}×",
        "± ": lambda row: (
            ""
            if row["high"] is None
            else f"{100 * ((_number(row['high']) or 0) / (_number(row['ratio']) or 1) - 1):.1f} %"
        ),
        "": lambda row: "skipped" if row["rounds"] is None else str(row["verdict"]),
        "subject": lambda row: str(row["subject"]),
    }
    rows = records(bisected)
    of = f"{len(bisected.state.commits)} {'versions' if bisected.state.package else 'commits'}"
    heading = f"{bisected.state.name}: {len(bisected.measured.times)} of {of} measured"
    notes = [note for place in range(len(bisected.result.culprits)) for note in _notes(bisected, place)]
    notes += [f"skipped {_commit(bisected, commit)}: {why}" for commit, why in bisected.state.skipped.items()]
    notes += [
        f"left open by the noise: {_commit(bisected, low)} is as before, {_commit(bisected, high)} is slower"
        for low, high in bisected.result.undecided
    ]
    return table(heading, rows, cells, words=("commit", "", "subject")).below(sentence=_sentence(bisected), notes=notes)


def _sentence(bisected: Bisected) -> str:
    result = bisected.result
    if result.refused:
        return f"No commit is named: {result.refused}."
    if not result.culprits:
        return "No commit is named: the noise leaves it open."
    several = (
        f"{len(result.culprits)} commits made it slower" if len(result.culprits) > 1 else "The first slower commit"
    )
    return f"{several}: {'; '.join(_commit(bisected, after) for _, after in result.culprits)}."


def _notes(bisected: Bisected, place: int) -> list[str]:
    """Notes on a culprit: its ratio, the other commits that it may be, and its possible cause."""
    before, after = bisected.result.culprits[place]
    by = effect(bisected.measured, before, after, bisected.result.cases, bisected.rules)
    cases = bisected.causes[place]
    name = namer([case.case for case in cases])
    slower = some([name(case.case) for case in cases])
    lines = [
        f"{_commit(bisected, after)}: {by.ratio:.3f}× ({by.low:.3f} to {by.high:.3f}) the time of "
        f"{_commit(bisected, before)}: {slower}"
    ]
    between = [_commit(bisected, commit) for commit in range(before + 1, after)]
    lines += [f"or what was skipped between them: {some(between, 'commits')}"] if between else []
    causes = dict.fromkeys("; ".join(map(str, case.causes)) or "nothing that is recorded changed" for case in cases)
    return [*lines, *(f"possible cause: {cause}" for cause in causes)]


def _commit(bisected: Bisected, commit: int) -> str:
    if bisected.state.package:
        return bisected.state.subjects[commit]
    return f"{bisected.state.commits[commit][:_SHORT]} {bisected.state.subjects[commit]}"


def _number(value: object) -> float | None:
    return value if isinstance(value, float) else None


def exit_code(bisected: Bisected) -> int:
    """0 if all culprits are known, else that of nothing that could be compared."""
    return 0 if bisected.result.culprits and not bisected.result.undecided else INCOMPARABLE


def result(bisected: Bisected) -> Result:
    """The table; as JSON with the culprits and their causes."""
    return Result(
        sections=[section(bisected)],
        data=lambda: {
            "commits": records(bisected),
            "culprits": [
                {
                    "commit": bisected.state.commits[after],
                    "subject": bisected.state.subjects[after],
                    "before": bisected.state.commits[before],
                    "causes": {case.case.id: list(map(str, case.causes)) for case in cases},
                }
                for (before, after), cases in zip(bisected.result.culprits, bisected.causes, strict=True)
            ],
            "undecided": [[bisected.state.commits[end] for end in ends] for ends in bisected.result.undecided],
            "refused": bisected.result.refused or None,
        },
        rows=lambda: records(bisected),
    )
