"""A comparison of runs as sections: differences between the environments, then the verdicts, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.groups import grouped
from smembench.model.text import number_of
from smembench.studies.compare.itself import SEEN_IN, SelfComparison
from smembench.studies.compare.verdicts import CHANGED, CaseComparison, Comparison, Difference, Verdict
from smembench.studies.difference import Ratio
from smembench.views.columns import milliseconds, ratio_text, some
from smembench.views.records import Record, values
from smembench.views.sections import Section, table

_LEAST_SHARED = 0.001
"""Smallest difference shared by all cases that is worth a word."""
Namer = Callable[[Case], str]


def case_records(comparison: Comparison, **first: str) -> list[Record]:
    """A record per case, for programs, with what comes ``first`` in each."""
    return [
        {
            **first,
            "case_id": one.case.id,
            "verdict": one.verdict.value,
            "reason": one.reason or None,
            "base_ms": one.base.elapsed_ms,
            "new_ms": one.new.elapsed_ms,
            **values(one, ("ratio", "low", "high", "p", "q", "noise")),
            "base_energy_mj": one.base.energy_mj,
            "new_energy_mj": one.new.energy_mj,
            "energy_ratio": one.energy[0] if one.energy else None,
            "energy_ratio_uncertainty": one.energy[1] if one.energy else None,
        }
        for one in comparison.cases
    ]


def self_records(comparison: SelfComparison) -> list[Record]:
    """The same of a configuration that is compared with itself."""
    names = ("elapsed_ms", "pairs", "false", "ambiguous", "largest", "seen", "reason")
    return [{"case_id": one.case.id, **values(one, names)} for one in comparison.cases]


def comparison_sections(
    comparison: Comparison, heading: str = "", *, every: bool = False, ambiguous: bool = False
) -> list[Section]:
    """Differences between the environments, if any, and the verdicts.

    Args:
        comparison: the comparison.
        heading: what is compared; the ids of the runs if it is empty.
        every: list every case, not only those that changed.
        ambiguous: list the ambiguous cases too.
    """
    heading = heading or f"{' + '.join(comparison.base)}, then {' + '.join(comparison.new)}"
    below = "Verdicts" if comparison.environment else heading
    verdicts = verdict_section(comparison, below, every=every, ambiguous=ambiguous)
    if not comparison.environment:
        return [verdicts]
    columns: dict[str, Callable[[Difference], str]] = {
        "what differs": lambda one: one.what,
        "base": lambda one: one.base,
        "new": lambda one: one.new,
    }
    return [table(heading, comparison.environment, columns, words=columns), verdicts]


def verdict_section(comparison: Comparison, heading: str, *, every: bool = False, ambiguous: bool = False) -> Section:
    """The verdicts with all that they rest on: effect, interval, q, noise, rules, and the runs compared with.

    Args:
        comparison: the comparison.
        heading: what is compared.
        every: list every case, not only those that changed.
        ambiguous: list the ambiguous cases too.
    """
    listed = {*CHANGED, *([Verdict.AMBIGUOUS] if ambiguous else []), *(Verdict if every else [])}
    shown = [case for case in comparison.cases if case.verdict in listed or case.hidden]
    name = namer([case.case for case in comparison.cases])
    columns: dict[str, Callable[[CaseComparison], str]] = {
        "verdict": lambda case: case.verdict.value,
        "case": lambda case: name(case.case),
        "base ms": lambda case: milliseconds(case.base.elapsed_ms),
        "new ms": lambda case: milliseconds(case.new.elapsed_ms),
        "ratio": lambda case: _ratio(case.ratio),
        f"± at\n{_percent(comparison.confidence)}": _half_width,
        "q": lambda case: "" if case.q is None else f"{case.q:.1g}",
        "noise": lambda case: "" if case.noise is None else f"{100 * case.noise:.2g} %",
    }
    unsure = any(case.verdict is Verdict.AMBIGUOUS for case in shown)
    columns |= {"chance\nslower": _chance} if unsure else {}
    columns |= {"energy per\nlaunch": _energy} if any(case.energy for case in shown) else {}
    noted = [case for case in comparison.cases if case in shown or case.verdict is Verdict.NOT_COMPARABLE]
    sides = {"base": comparison.only_base, "new": comparison.only_new}
    notes = [_rules(comparison)] if shown else []
    causes = ((case, case.cause) for case in shown)
    notes += [f"possible cause of {text}" for text in why(causes, name)]
    notes += why(((case, case.reason) for case in noted), name)
    notes += _baselines(shown, name)
    notes += [f"only in {side}: {some(cases)}" for side, cases in sides.items() if cases]
    notes += [comparison.caution] if comparison.caution else []
    notes += shared_by_all(comparison)
    return table(
        heading, shown, columns, words=("verdict", "case"), wide=("base ms", *(["noise"] if unsure else []))
    ).below(sentence=_counted(comparison, Counter(case.verdict for case in shown)), notes=notes)


def _energy(case: CaseComparison) -> str:
    """The ratio of energies with its 95 % interval, which decides no verdict."""
    return "" if case.energy is None else ratio_text(Ratio(*case.energy))


def _chance(case: CaseComparison) -> str:
    """The probability that an ambiguous case is slower by more than the threshold."""
    unsure = case.verdict is Verdict.AMBIGUOUS and case.chance is not None
    return f"{100 * (case.chance or 0.0):.0f} %" if unsure else ""


def _counted(comparison: Comparison, listed: Mapping[Verdict, int]) -> str:
    """The number of cases per verdict: ``1 slower, 2 ambiguous (not listed), of 3 cases.``"""

    def entry(verdict: Verdict, count: int) -> str:
        few = f" ({listed[verdict]} of them listed)" if listed[verdict] else " (not listed)"
        return f"{count} {'the same' if verdict is Verdict.SAME else verdict}{'' if listed[verdict] == count else few}"

    entries = [entry(verdict, count) for verdict, count in comparison.counts.items() if count]
    cases = number_of(len(comparison.cases), "case")
    return f"{', '.join(entries)}, of {cases}." if entries else "The sides have no case in common."


def shared_by_all(comparison: Comparison) -> list[str]:
    """Notes on shared changes, which the ratios of a device do not include, if they are large enough to matter."""
    return [
        f"all cases on {device} together were {100 * abs(by):.1g} % {'slower' if by > 0 else 'faster'}, within "
        "nightly variation: no ratio includes it"
        for device, by in comparison.shared.items()
        if abs(by) >= _LEAST_SHARED
    ]


def case_ratio(case: CaseComparison) -> str:
    """A case's ratio with its interval."""
    return " ± ".join(filter(None, (_ratio(case.ratio), _half_width(case))))


def _half_width(case: CaseComparison) -> str:
    return "" if case.ratio is None or case.high is None else f"{100 * (case.high / case.ratio - 1):.1f} %"


def why(reasons: Iterable[tuple[CaseComparison, str]], name: Namer) -> list[str]:
    """Each reason of a verdict once, with its cases."""
    by_reason = grouped(reasons, lambda one: (one[0].verdict, one[1]))
    return [
        f"{verdict.value}: {some([name(case.case) for case, _ in group])}: {reason}"
        for (verdict, reason), group in by_reason.items()
        if reason
    ]


def _baselines(cases: Sequence[CaseComparison], name: Namer) -> list[str]:
    """Each set of runs once that cases were compared with, with its cases if there are several."""
    judged = (case for case in cases if case.held_against and case.verdict is not Verdict.NOT_COMPARABLE)
    by_runs = grouped(judged, lambda case: tuple(case.held_against))
    return [
        f"compared with {runs[0] if len(runs) == 1 else f'{len(runs)} runs, {runs[0]} to {runs[-1]}'}"
        + (f": {some([name(case.case) for case in group])}" if len(by_runs) > 1 else "")
        for runs, group in by_runs.items()
    ]


def self_section(comparison: SelfComparison) -> Section:
    """Every case of an A/A comparison, those with the largest detectable slowdown first."""
    name = namer([case.case for case in comparison.cases])
    reasons = Counter(case.reason for case in comparison.cases)
    return table(
        f"{len(comparison.runs)} runs against each other, {number_of(comparison.pairs, 'pair')} · {_rules(comparison)}",
        comparison.cases,
        {
            "case": lambda case: name(case.case),
            "pairs": lambda case: str(case.pairs),
            "false": lambda case: str(case.false),
            "ambiguous": lambda case: str(case.ambiguous),
            "largest\nratio": lambda case: _ratio(case.largest),
            "slowdown\nseen": lambda case: "" if case.seen is None else _percent(case.seen),
        },
        words=("case",),
    ).below(
        sentence=_self_sentence(comparison),
        notes=[f"not comparable: {number_of(of, 'case')}: {reason}" for reason, of in reasons.most_common() if reason],
    )


def _self_sentence(test: SelfComparison) -> str:
    if not test.judged:
        return "No case could be compared."
    lines = [
        f"False verdicts: {test.false} of {test.judged} ({_percent(test.false / test.judged)}), "
        f"in {test.pairs_false} of {number_of(test.pairs, 'pair')}."
    ]
    if test.classes:
        classes = "; ".join(f"{name} {_percent(seen)}" for name, _, seen in test.classes)
        lines.append(f"Smallest slowdown that is detected in {_percent(SEEN_IN)} of the cases, by duration: {classes}.")
        lines.append(
            "No threshold here rules out false verdicts."
            if test.suggested is None
            else f"Suggested: --threshold {100 * test.suggested:g}, half of what noise adds until a slowdown is "
            "detected, and more than any false verdict."
        )
    else:
        lines.append("With one round per run the noise between rounds is unknown: measure without --quick.")
    return "\n".join(lines)


def _rules(comparison: Comparison | SelfComparison) -> str:
    return f"threshold {_percent(comparison.threshold)}, false discovery rate {_percent(comparison.fdr)}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.3f}×"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"


def namer(cases: Sequence[Case]) -> Namer:
    """Short names of cases: kernel, block, pad, size, parameters, stride, which of several GPUs, what is unusual."""
    rest = ("dtype", "inputs", "b_layout", "cache", "device", "compiler")
    usual = {part: Counter(getattr(case, part) for case in cases).most_common(1)[0][0] for part in rest if cases}
    if len({case.device for case in cases} - {"cpu"}) > 1:
        usual["device"] = None

    def name(case: Case) -> str:
        pad = f"+{case.pad}" if case.pad else None
        stride = f"stride {case.stride}" if case.stride else None
        values = {part: getattr(case, part) for part in rest}
        # A library's kernel has the library's name and is compiled by it: say it once.
        unusual = [value for part, value in values.items() if value not in (usual[part], case.kernel)]
        parameters = (f"{name} {value}" for name, value in case.parameters)
        size = PROBLEMS[case.problem].texts.size(case) if case.m == 1 else case.size  # of a row only its length
        parts = (case.kernel, case.block, pad, size, *parameters, stride, *unusual)
        return " ".join(str(part) for part in parts if part)

    return name
