"""Compare a night's run with the runs before it, the pinned baseline, or a named run."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from smembench.model.errors import SmembenchError, UsageError
from smembench.model.measurement import Status
from smembench.model.progress import Step, unseen
from smembench.model.text import number_of
from smembench.store.csv_files import CASES
from smembench.store.load import LAST, load
from smembench.store.run import Run
from smembench.store.run_folder import resume_command
from smembench.studies.accept import Acceptance, accepted, began, for_run, patterns_of
from smembench.studies.baseline import baselines, pin_command
from smembench.studies.compare import Comparison, Rules, Verdict, compare_runs
from smembench.studies.compare.beside import beside
from smembench.studies.compare.comparability import check_apart
from smembench.studies.nightly.last import compare_with_last
from smembench.studies.nightly.runs import READ, on_a_gpu, runs_before, set_aside, unlike, without_left_over

BASELINE = "baseline"


def never_pruned(root: Path) -> list[Path]:
    """The pinned runs and those whose level is accepted, of all configs."""
    return [*baselines(root).values(), *(root / one.run for one in accepted(root))]


def is_named(text: str) -> bool:
    """True if a text means earlier runs, ``last``, ``last:N`` or ``baseline``, rather than a path."""
    return text == BASELINE or text.partition(":")[0] == LAST


def check(compare_to: str, root: Path, config: str) -> None:
    """Make sure before a run that it can be compared.

    Raises:
        UsageError: for an invalid number of runs, a baseline that is not pinned, and a run that cannot be read.
    """
    pinned = baselines(root)
    if compare_to == BASELINE and config not in pinned:
        raise UsageError(f"{compare_to}: no run is pinned for {config}: {pin_command(root)}")
    for path in [pinned[config]] if config in pinned else []:
        _load(path, BASELINE)
    if not is_named(compare_to):
        _load(Path(compare_to), "--compare-to")
    count_of(compare_to)


def count_of(compare_to: str) -> int:
    """The number of previous runs: 1 for ``last``, N for ``last:N``, 0 for anything else.

    Raises:
        UsageError: for an N that is not a positive number.
    """
    name, colon, number = compare_to.partition(":")
    if name != LAST:
        return 0
    if not colon:
        return 1
    if not number.isdecimal() or len(number) > 9 or int(number) < 1:
        raise UsageError(f"{compare_to[:80]}: give a number of runs, such as last:7")
    return int(number)


@dataclass(slots=True)
class Review:
    """Comparisons of a run, each with the name of what it is compared with, and lines about them.

    Attributes:
        notes: what else is worth a word.
        problems: what failed or is missing, in part.
        nothing: why nothing could be compared, although there is something to compare with.
    """

    compared: list[tuple[str, Comparison]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    nothing: list[str] = field(default_factory=list)


def compare(compare_to: str, root: Path, new: Run, rules: Rules, step: Step = unseen) -> Review:
    """Compare a run with others.

    ``last`` is the previous run, ``last:N`` the previous N, each case's those on its device. If a baseline is pinned,
    both compare with that too, because a slow drift never shows from one run to the next. With ``last:N`` the newest N
    runs, including this one, are compared with the baseline. A case whose change is accepted is compared with the runs
    from the accepted one on. ``step`` is called before each run is read.
    """
    count = count_of(compare_to)
    review = Review()
    meant = for_run(accepted(root), new) if is_named(compare_to) else {}
    fresh = {case for case, one in meant.items() if one.started_at_utc == began(new)}
    newest = [new]
    if compare_to != BASELINE:
        before = _readable(_meant(compare_to, root, new), compare_to, review, step)
        judge = (
            partial(_with_last, before, new, count, meant, rules) if count else partial(_with_named, before, new, rules)
        )
        if before and not fresh.issuperset(row.case_id for row in new.rows):
            _add(review, compare_to, judge)
        _absent(before, new, review)
        newest = [*before, new][-max(count, 1) :]
        if count:
            _left_out(compare_to, count, root, new, before, review)
    pinned = baselines(root).get(new.description.config.name) if is_named(compare_to) else None
    if pinned is not None and [run.path for run in newest[:-1]] != [pinned]:
        for base in _readable([pinned], BASELINE, review):
            if compare_to == BASELINE:
                _absent([base], new, review)
            elif began(base) >= began(new):  # pinned since, so no run before it
                continue
            _add(review, BASELINE, partial(_with_baseline, root, base, newest, meant, rules))
    if fresh:
        review.notes.append(f"accepted from this run on, {number_of(len(fresh), 'case')}: {meant[min(fresh)].reason}")
    elif not review.compared and not review.problems:
        review.notes.append("there is no run before it to compare with")
    return review


def _meant(compare_to: str, root: Path, new: Run) -> list[Path]:
    """The folders of the runs before a run, oldest first, or of the named one."""
    if not count_of(compare_to):
        return [Path(compare_to)]
    return without_left_over(runs_before(root, new.description, READ), never_pruned(root))


def _left_out(asked: str, count: int, root: Path, new: Run, before: Sequence[Run], review: Review) -> None:
    """Name the earlier runs that are not compared with; if there are no others, nothing could be compared."""
    lines = review.notes if before else review.nothing
    lines += set_aside(root, new.description)
    others, names = unlike(root, new.description), [device.name for device in new.description.devices]
    if len(before) < count and others.unnamed:
        lines.append(
            f"{asked}: left out {number_of(len(others.unnamed), 'run')} without the device it was measured on, such "
            f"as {others.unnamed[-1]}; two runs can be compared with: smembench compare BASE NEW --across device"
        )
    if gpu_run := on_a_gpu(root, new.description):
        review.problems.append(
            f"{asked}: no GPU was measured, unlike in {gpu_run}; smembench doctor says what is missing"
        )
    if not before and not any(map(new.description.identity, names)) and (others.elsewhere or others.unnamed):
        lines.append(f"{asked}: {new.id} does not say on which device it was measured, so no run is compared with it")
    elif not before and others.elsewhere:
        lines.append(
            f"{asked}: {number_of(len(others.elsewhere), 'other run')} of this config, such as {others.elsewhere[-1]}: "
            "of other devices, or of the same ones by other names; each device is compared with itself alone"
        )
    if not before and others.unfinished:
        lines.append(
            f"{asked}: {number_of(len(others.unfinished), 'run')} not complete, such as {others.unfinished[-1]}; "
            f"continue it with: {resume_command(others.unfinished[-1])}"
        )


def _add(review: Review, what: str, judge: Callable[[], Comparison]) -> None:
    try:
        result = judge()
    except SmembenchError as error:
        review.nothing.append(f"not compared: {what}: {error}")
        return
    review.compared.append((what, result))
    (review.problems if result.judged else review.nothing).extend(
        f"{what}: {problem}" for problem in not_judged(result)
    )


def not_judged(comparison: Comparison) -> Iterator[str]:
    """Gaps in a comparison: a whole device without a verdict, and unresolved changes of earlier runs."""
    if not comparison.cases:
        yield "nothing could be compared: no case is in both"
    missed = [case for case in comparison.cases if case.verdict is Verdict.NOT_COMPARABLE]
    for device in dict.fromkeys(case.case.device for case in missed):
        cases = [case for case in comparison.cases if case.case.device == device]
        if all(case in missed for case in cases):
            yield f"nothing on {device} could be compared: {cases[0].reason}"
    if changed := [case for case in missed if case.open]:
        first, *others = changed
        some = f"{first.case.id}{f' and {len(others)} more' if others else ''}"
        yield f"not compared, though changed before: {some}: {first.reason}"


def _absent(before: Sequence[Run], new: Run, review: Review) -> None:
    """Name the cases of earlier runs, oldest first, of which a run has no row, or one that was skipped.

    One that its config still plans is a problem; the others are named in the first run without them.
    """
    newest = {row.case_id: (run, row.device) for run in before for row in run.rows if row.status != Status.SKIPPED}
    own = {row.case_id for row in new.rows if row.status != Status.SKIPPED}
    gone = [case for case in newest if case not in own]
    planned = [case for case in gone if _still_planned(*newest[case], new)]
    left = [case for case in gone if case not in planned and newest[case][0] is before[-1]]
    if planned:
        review.problems.append(
            f"without a result, although the config is unchanged: {_folded(planned, newest)}; to stop measuring a "
            "case, remove it from the config"
        )
    if left:
        review.notes.append(f"no longer measured, because the config or the code changed: {_folded(left, newest)}")


def _still_planned(before: Run, device: str, new: Run) -> bool:
    """True if nothing that run.json records explains why a case on a device is no longer measured."""
    was, now = before.description, new.description
    if not was.config.sweep or _in_any_order(was.config.sweep) != _in_any_order(now.config.sweep):
        return False
    same_code = bool(was.code) and (was.code, was.kernels) == (now.code, now.kernels)
    return same_code or now.device(device) is None


def _in_any_order(sweeps: Sequence[Mapping[str, object]]) -> list[str]:
    return sorted(json.dumps(sweep, sort_keys=True) for sweep in sweeps)


def _folded(cases: Sequence[str], every: Collection[str]) -> str:
    first, *others = patterns_of(cases, every)
    return f"{first}{f' and {len(others)} more' if others else ''}"


def _with_named(base: Sequence[Run], new: Run, rules: Rules) -> Comparison:
    check_apart(base, [new])
    return compare_runs(base, [new], rules, beside=beside(base, [new]))


def _with_last(
    before: Sequence[Run], new: Run, count: int, meant: Mapping[str, Acceptance], rules: Rules
) -> Comparison:
    """Each case against the runs at its level; one whose accepted level no earlier run has shown yet is left out."""
    levels = {
        case: next((run.id for run in before if began(run) >= one.started_at_utc), "") for case, one in meant.items()
    }
    first = {case for case, run_id in levels.items() if not run_id}
    *earlier, judged = (_without(run, first) for run in (*before, new))
    return compare_with_last(earlier, judged, count, rules, levels)


def _with_baseline(
    root: Path, pinned: Run, newest: Sequence[Run], meant: Mapping[str, Acceptance], rules: Rules
) -> Comparison:
    """Each case against the pinned run, or a later one whose level is accepted; left out if that is gone."""
    check_apart([pinned], newest[-1:])
    later = {case: one for case, one in meant.items() if one.started_at_utc > began(pinned)}
    levels = [
        load(root / name, shown=False) for name in {one.run for one in later.values()} if (root / name / CASES).exists()
    ]
    since = [_without(run, {case for case, one in later.items() if began(run) <= one.started_at_utc}) for run in newest]
    judged = {row.case_id for run in since for row in run.rows} & later.keys()
    of_level = [
        run.only([row for row in run.rows if row.case_id in judged and later[row.case_id].run == run.id])
        for run in levels
    ]
    return compare_runs([_without(pinned, later), *of_level], since, rules)


def _without(run: Run, cases: Container[str]) -> Run:
    return run.only([row for row in run.rows if row.case_id not in cases])


def _readable(paths: Sequence[Path], what: str, review: Review, step: Step = unseen) -> list[Run]:
    """The runs that can be read."""
    runs, damaged = [], []
    for number, path in enumerate(paths, 1):
        step(path.name, number, len(paths))
        try:
            runs.append(_load(path, what))
        except UsageError as error:
            damaged.append(f"not compared: {error}")
    (review.notes if runs else review.nothing).extend(damaged)
    return runs


def _load(path: Path, what: str) -> Run:
    try:
        return load(path, shown=False)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
