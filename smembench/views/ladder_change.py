"""``smembench ladder --diff``: a step's predicted counters and instructions, then the lines that it changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from rich.console import Console
from rich.syntax import Syntax

from smembench.kernels.problems import PROBLEMS
from smembench.model.install import CUDA
from smembench.model.text import number_of
from smembench.store.run import Run
from smembench.studies.ladder.change import Change, Step
from smembench.views.columns import Column, number, some
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

_KINDS, _ALL_KINDS = 6, 15
"""Kinds of instructions that are shown, those that change most."""
_LINES = 60
"""Lines of functions that are shown."""
_FEW = 3
"""Most functions that are named where they are not shown."""
_CONTEXT = 1
"""Lines around those that change."""


def print_change(console: Console, change: Change, capability: str | None, *, full: bool = False) -> None:
    """Both steps' figures, the constants that change, and the functions that the step is about, or all lines."""
    draw(console, [_title(change), figures(change, capability, full=full)])
    console.print()
    lines = shown(change, full=full)
    if console.is_terminal:
        text = plain(console, "\n".join(lines))
        console.print(Syntax(text, "diff", theme="ansi_dark", background_color="default", word_wrap=True))
    else:
        for line in lines:
            say(console, line)


def shown(change: Change, *, full: bool) -> list[str]:
    """The constants that change, then lines of the functions that change, as many as fit two screens."""
    if not change.lines:
        return ["The lines are the same at this size."]
    if full:
        return change.lines
    lines = [f"{name}: {old} -> {new}" for name, (old, new) in change.constants.items() if "\n" not in old + new]
    others: list[str] = []
    for old, new in change.functions:
        before = old.source if old else ()
        names = (f"{old.name} in {old.file}" if old else "/dev/null", f"{new.name} in {new.file}")
        changed = _changed(before, new.source, *names)
        room = _LINES - len(lines)
        if new is change.after.parts[0] and len(changed) > room:
            changed[room:] = [f"… and {len(changed) - room} lines more"]
        elif len(changed) > room:  # of a function that is another one, its lines alone
            changed = _changed((), new.source, "/dev/null", names[1])
            if len(changed) > room:
                others.append(new.name)
                continue
        lines += ["", *changed] if lines and changed else changed
    return [*lines, "", f"--full shows {_named(others)}, too."] if others else lines


def _changed(before: Sequence[str], after: Sequence[str], old: str, new: str) -> list[str]:
    """A unified diff, in which lines that differ by indentation or a comment at their end are as before."""
    was, now = ([line.partition("  # ")[0].strip() for line in lines] for lines in (before, after))
    lines = [f"--- {old}", f"+++ {new}"]
    for group in SequenceMatcher(None, was, now, autojunk=False).get_grouped_opcodes(_CONTEXT):
        (_, first, _, begin, _), (_, _, last, _, end) = group[0], group[-1]
        lines.append(f"@@ -{first + 1},{last - first} +{begin + 1},{end - begin} @@")
        for tag, i, j, k, m in group:
            if tag == "equal":
                lines += [f" {line}" for line in after[k:m]]
            else:
                lines += [*(f"-{line}" for line in before[i:j]), *(f"+{line}" for line in after[k:m])]
    return lines


def _named(functions: Sequence[str]) -> str:
    several = f"{number_of(len(functions), 'function')} that changed"
    return f"{several} ({some(functions, 'functions')})" if len(functions) <= _FEW else several


def result(change: Change, capability: str | None, measured: Run | None, *, full: bool = False) -> Result:
    """The changes of a step, and its gain if a run measured it."""
    lines = shown(change, full=full)
    source = Section("Lines of the source", [Column("line", numeric=False)], [[line] for line in lines])
    gains = ladder(measured) if measured else []
    return Result(
        sections=[_title(change), figures(change, capability, full=full), source, *gains],
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


def figures(change: Change, capability: str | None, *, full: bool = True) -> Section:
    """The figures of both steps: predicted per request of a warp, and counted in the machine code."""
    steps = (change.before, change.after)
    cells = {"block": tuple(block(step.explained.case) for step in steps)}
    for name, (value, text) in _FIGURES.items():
        cells[name] = tuple("" if (amount := value(step)) is None else text(amount) for step in steps)
    kinds, most = list(change.instructions.items()), _ALL_KINDS if full else _KINDS
    cells |= {f"  {kind}": (str(old), str(new)) for kind, (old, new) in kinds[:most]}
    if others := [numbers for _, numbers in kinds[most:]]:
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
    ).below(sentence=f"Instructions and registers unknown: no CUDA compiler found: {CUDA}." if missing else "")
