"""``smembench ladder --diff``: the lines that a step changes, then its instructions and predicted counters."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.syntax import Syntax

from smembench.kernels.problems import PROBLEMS
from smembench.store.run import Run
from smembench.studies.ladder.change import Change, Step
from smembench.views.columns import Column, number
from smembench.views.console import plain, say
from smembench.views.export import Result, cases
from smembench.views.ladder import ladder
from smembench.views.sections import Section, block, table
from smembench.views.table import draw

_FIGURES: dict[str, tuple[Callable[[Step], float | None], Callable[[float], str]]] = {
    "wavefronts per shared load request": (lambda step: step.explained.wavefronts("load"), number),
    "wavefronts per shared store request": (lambda step: step.explained.wavefronts("store"), number),
    "sectors per global load request": (lambda step: step.explained.sectors("load"), number),
    "sectors per global store request": (lambda step: step.explained.sectors("store"), number),
    "shared bytes per block": (lambda step: step.explained.shared_bytes or None, str),
    "registers per thread": (lambda step: code.registers if (code := step.explained.code) else None, str),
    "occupancy": (
        lambda step: fits.fraction if (fits := step.explained.occupancy) else None,
        lambda share: f"{100 * share:.0f} %",
    ),
    "instructions": (lambda step: code.instructions if (code := step.explained.code) else None, str),
}
"""By name: the value of a step, and its text."""

_MOST_KINDS = 15
"""Kinds of instructions that are shown, those that change most."""


def print_change(console: Console, change: Change, capability: str | None) -> None:
    """The lines of a step that differ from those before, and a table of both steps' figures."""
    draw(console, [_title(change)])
    if not change.lines:
        say(console, "The lines are the same at this size.")
    elif console.is_terminal:
        text = plain(console, "\n".join(change.lines))
        console.print(Syntax(text, "diff", theme="ansi_dark", background_color="default", word_wrap=True))
    else:
        for line in change.lines:
            say(console, line)
    console.print()
    draw(console, [figures(change, capability)])


def result(change: Change, capability: str | None, measured: Run | None) -> Result:
    """What a step changes, and the gain in a run, if it was measured in one."""
    source = Section("Lines of the source", [Column("line", numeric=False)], [[line] for line in change.lines])
    return Result(
        sections=[_title(change), source, figures(change, capability), *(ladder(measured) if measured else [])],
        data=lambda: {**change_records(change), "cases": cases(measured) if measured else []},
    )


def _title(change: Change) -> Section:
    before, after = change.before.kernel, change.after.kernel
    return Section(f"{after.name} against {before.name}", [], [], sentence=after.ladder)


def change_records(change: Change) -> dict[str, object]:
    """The same for programs."""
    return {
        "steps": [
            {
                "case_id": step.explained.case.id,
                "what_changes": step.kernel.ladder,
                **{name.replace(" ", "_"): value(step) for name, (value, _) in _FIGURES.items()},
            }
            for step in (change.before, change.after)
        ],
        "instructions": [
            {"kind": kind, "before": old, "after": new} for kind, (old, new) in change.instructions.items()
        ],
        "diff": change.lines,
    }


def figures(change: Change, capability: str | None) -> Section:
    """The figures of both steps: predicted per request of a warp, and counted in the machine code."""
    steps = (change.before, change.after)
    cells = {"block": tuple(block(step.explained.case) for step in steps)}
    for name, (value, text) in _FIGURES.items():
        cells[name] = tuple("" if (found := value(step)) is None else text(found) for step in steps)
    kinds = list(change.instructions.items())
    cells |= {f"  {kind}": (str(old), str(new)) for kind, (old, new) in kinds[:_MOST_KINDS]}
    if others := [numbers for _, numbers in kinds[_MOST_KINDS:]]:
        cells[f"  {len(others)} other kinds"] = tuple(str(sum(numbers)) for numbers in zip(*others, strict=True))
    case = change.after.explained.case
    where = f"compute capability {capability}" if capability else "a GPU of unknown limits"
    missing = any(step.explained.code is None for step in steps)
    return table(
        f"{PROBLEMS[case.problem].texts.size(case)} {case.dtype} · {where}",
        [(name, *pair) for name, pair in cells.items() if any(pair)],
        {
            "figure": lambda line: line[0],
            change.before.kernel.name: lambda line: line[1],
            change.after.kernel.name: lambda line: line[2],
        },
        words=("figure",),
    ).below(
        sentence="Instructions and registers are not counted, since no installed compiler makes code of them."
        if missing
        else ""
    )
