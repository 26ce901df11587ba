"""``smembench explain`` of the package's kernels: an explanation, better layouts, counters beside predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from smembench.cli.explain_options import Asked, Chosen, Pages, Task
from smembench.cli.output import Opened
from smembench.model.errors import SmembenchError, UsageError

if TYPE_CHECKING:
    from smembench.model.case import Case


def explain_package(kernel: str, block: str | None, chosen: Chosen, task: Task, outputs: Pages) -> int:
    """Do a task for the package's kernels; how many mistakes an explained one has.

    Raises:
        UsageError: for names, options and several cases that the task does not take.
    """
    what = task.chosen(outputs)
    target = outputs.opened(what)
    if what == "measure" and chosen.gpu is not None:
        raise UsageError("--gpu and --measure: counters are those of the GPU here; leave out --gpu")
    asked = chosen.asked(kernel, block)
    if what == "measure":
        _measure(asked, target)
    elif what in ("best_pad", "best_swizzle"):
        _better(asked.case, what, task.row, target)
    else:
        return _explain(asked, target, page=outputs.html)
    return 0


def _explain(asked: Asked, target: Opened, *, page: Path | None) -> int:
    """Explain a case; with ``page`` only a page is written, and mistakes are not counted."""
    from smembench.explain.record import to_dict
    from smembench.studies.explain import explained, measured, next_command
    from smembench.views.console import say, stderr, stdout
    from smembench.views.explain import explanation, print_explanation, tables
    from smembench.views.explain_cure import cure_lines, cure_sections
    from smembench.views.explain_roof import roof
    from smembench.views.export import Result

    case, capability, device = asked.case, asked.capability, asked.device
    timed = measured(case, asked.run, device) if asked.run is not None and device is not None else None
    prediction = explained(case, capability, device.sm_count if device else None)
    shown, cures = [*explanation(prediction), roof(prediction, capability, device, timed)], cure_lines(prediction)

    def html() -> str:
        from smembench.report.explanation import explanation_page

        return explanation_page(prediction, [*shown, *cure_sections(cures)])

    result = Result(
        sections=tables(prediction, shown, cures),
        data=lambda: {**to_dict(prediction, capability, device), "measured_ms": timed.elapsed_ms if timed else None},
        html=html,
    )
    if page is not None:
        target.show(result, lambda: say(stderr, f"wrote {page}"))
        return 0
    following = next_command(case, prediction)
    target.show(result, lambda: print_explanation(stdout, prediction, shown, cures, following))
    return len(prediction.trace.mistakes)


def _better(case: Case, what: str, row: int | None, target: Opened) -> None:
    """Show pads, or layouts, of the shared arrays without the case's own pad."""
    from smembench.cli.explain_layouts import show_layouts, show_pads
    from smembench.explain.analysis import explain
    from smembench.kernels.registry import kernel_of

    explained = explain(replace(case, pad=0) if kernel_of(case).pad else case)
    heading = f"{case.kernel} · block {case.block} · {case.dtype}"
    (show_pads if what == "best_pad" else show_layouts)(explained, heading, row, target)


def explain_report(path: Path, outputs: Pages) -> None:
    """Show the counters in a report of ncu."""
    from smembench.explain.counters import counted_in
    from smembench.views.explain_counters import profiled, profiled_records
    from smembench.views.export import Result

    target = outputs.opened("report")
    counts = counted_in(path)
    records = profiled_records(counts)
    table = profiled(counts, f"Counted by the hardware: {path.name}")
    target.show(Result(sections=[table], data=lambda: {"figures": records}, rows=lambda: records))


def _measure(asked: Asked, target: Opened) -> None:
    """Compare the predictions with the hardware's counters."""
    from smembench.model.text import number_of
    from smembench.studies.explain import counted
    from smembench.views.explain_counters import comparison, counter_records
    from smembench.views.export import Result

    device = asked.device
    comparisons = counted(asked.cases, asked.capability, device.sm_count if device else None)
    records = counter_records(comparisons)
    table = comparison(comparisons, f"Predicted, and counted by the hardware: {number_of(len(asked.cases), 'case')}")
    target.show(Result(sections=[table], data=lambda: {"figures": records}, rows=lambda: records))
    if others := sum(item.agrees is False for item in comparisons):
        every = number_of(len(comparisons), "prediction")
        raise SmembenchError(f"{others} of {every} differ from the hardware's counters")
