"""A comparison of runs as sections: differences between the environments, then the verdicts, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median

from smembench.model.case import Case
from smembench.studies.compare.itself import SEEN_IN, SelfComparison
from smembench.studies.compare.verdicts import CaseComparison, Comparison, Verdict
from smembench.views.columns import Column, compact, milliseconds, some
from smembench.views.sections import Section

Namer = Callable[[Case], str]


def comparison_sections(found: Comparison, *, every: bool = False) -> list[Section]:
    """Differences between the environments, if any, and the verdicts; with ``every`` of all cases."""
    heading = f"{' + '.join(found.base)}, then {' + '.join(found.new)}"
    rules = f"threshold {_percent(found.threshold)}, false discovery rate {_percent(found.fdr)}"
    if not found.environment:
        return [_verdicts(found, f"{heading} · {rules}", every=every)]
    columns = [Column(name, numeric=False) for name in ("what differs", "base", "new")]
    cells = [[difference.what, difference.base, difference.new] for difference in found.environment]
    return [Section(heading, columns, cells), _verdicts(found, f"Verdicts · {rules}", every=every)]


def _verdicts(found: Comparison, heading: str, *, every: bool) -> Section:
    shown = [case for case in found.cases if every or case.verdict is not Verdict.SAME]
    name = namer([case.case for case in found.cases])
    columns = [
        *(Column(title, numeric=False) for title in ("verdict", "case")),
        *(Column(title) for title in ("base ms", "new ms", "ratio", f"± at\n{_percent(found.confidence)}")),
        Column("q", wide=True),
    ]
    cells = [
        [
            case.verdict.value,
            name(case.case),
            *("" if side.elapsed_ms is None else milliseconds(side.elapsed_ms) for side in (case.base, case.new)),
            "" if case.ratio is None else f"{case.ratio:.3f}×",
            "" if case.ratio is None or case.high is None else f"{100 * (case.high / case.ratio - 1):.1f} %",
            "" if case.q is None else compact(case.q),
        ]
        for case in shown
    ]
    notes = [*_reasons(shown, name), *_one_sided("base", found.only_base), *_one_sided("new", found.only_new)]
    notes += [found.caution] if found.caution else []
    return Section(heading, columns, cells, sentence=_counted(found, every=every), notes=notes)


def _counted(found: Comparison, *, every: bool) -> str:
    """How many cases have each verdict: ``1 slower, 2 ambiguous, 40 the same (not listed), of 43 cases.``"""
    same = "the same" if every else "the same (not listed)"
    said = [
        f"{count} {same if verdict is Verdict.SAME else verdict.value}"
        for verdict, count in found.counts.items()
        if count
    ]
    return f"{', '.join(said)}, of {_many(len(found.cases), 'case')}." if said else "The sides have no case in common."


def _reasons(cases: Sequence[CaseComparison], name: Namer) -> list[str]:
    """Each reason once, with its cases."""
    by_reason: dict[tuple[Verdict, str], list[str]] = {}
    for case in cases:
        if case.reason:
            by_reason.setdefault((case.verdict, case.reason), []).append(name(case.case))
    return [f"{verdict.value}: {some(names)}: {reason}" for (verdict, reason), names in by_reason.items()]


def _one_sided(side: str, cases: Sequence[str]) -> list[str]:
    return [f"only in {side}: {some(cases)}"] if cases else []


def self_section(found: SelfComparison) -> Section:
    """Every case of an A/A comparison, those with the largest detectable slowdown first."""
    name = namer([case.case for case in found.cases])
    columns = [
        Column("case", numeric=False),
        *(Column(title) for title in ("pairs", "false", "ambiguous", "largest\nratio", "slowdown\ndetected")),
    ]
    cells = [
        [
            name(case.case),
            *map(str, (case.pairs, case.false, case.ambiguous)),
            "" if case.largest is None else f"{case.largest:.3f}×",
            "" if case.seen is None else _percent(case.seen),
        ]
        for case in found.cases
    ]
    rules = f"threshold {_percent(found.threshold)}, false discovery rate {_percent(found.fdr)}"
    reasons = Counter(case.reason for case in found.cases)
    return Section(
        f"{len(found.runs)} runs against each other, {_many(found.pairs, 'pair')} · {rules}",
        columns,
        cells,
        sentence=_said_of_itself(found),
        notes=[f"not comparable: {count} cases: {reason}" for reason, count in reasons.most_common() if reason],
    )


def _said_of_itself(found: SelfComparison) -> str:
    if not found.judged:
        return "No case could be compared."
    lines = [
        f"False verdicts: {found.false} of {found.judged} ({_percent(found.false / found.judged)}), "
        f"in {found.pairs_false} of {_many(found.pairs, 'pair')}."
    ]
    if seen := [case.seen for case in found.cases if case.seen is not None]:
        lines.append(
            f"Smallest slowdown detected in {_percent(SEEN_IN)} of pairs: {_percent(median(seen))} in half the cases, "
            f"{_percent(max(seen))} in all."
        )
        lines.append(
            "No threshold here rules out false verdicts."
            if found.suggested is None
            else f"Suggested: --threshold {100 * found.suggested:g}, the least with no false verdict among these runs."
        )
    else:
        lines.append("With one round per run the noise between rounds is unknown: measure without --quick.")
    return "\n".join(lines)


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def namer(cases: Sequence[Case]) -> Namer:
    """Short names of cases: kernel, block, pad, size, parameters, stride, and whatever differs from most cases."""
    rest = ("dtype", "cache", "device", "compiler")
    usual = {part: Counter(getattr(case, part) for case in cases).most_common(1) for part in rest}

    def name(case: Case) -> str:
        pad = f"+{case.pad}" if case.pad else None
        stride = f"stride {case.stride}" if case.stride else None
        values = {part: getattr(case, part) for part in rest}
        # A library's kernel has the library's name and is compiled by it: say it once.
        unusual = [value for part, value in values.items() if value not in (usual[part][0][0], case.kernel)]
        parameters = (f"{name} {value}" for name, value in case.parameters)
        parts = (case.kernel, case.block, pad, case.size, *parameters, stride, *unusual)
        return " ".join(str(part) for part in parts if part is not None)

    return name
