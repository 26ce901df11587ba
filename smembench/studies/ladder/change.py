"""What a step of the ladder changes from the step before it: lines, machine code and predicted counters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from pprint import pformat
from textwrap import dedent
from types import CodeType, FunctionType
from typing import TypeGuard

from smembench.explain.analysis import Explanation
from smembench.explain.trace import traceable
from smembench.kernels import intrinsics, registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.groups import grouped
from smembench.run.axes import parse_names
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.explain import UNKNOWN, Axes, Target, cases, explained
from smembench.studies.ladder import climb

_WIDTH = 100
"""Characters per line of a constant."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step in one case: the file and the lines of its source, and its trace with the machine code."""

    kernel: Kernel
    file: str
    source: tuple[str, ...]
    explained: Explanation


@dataclass(frozen=True, slots=True)
class Change:
    """A step and the one that it is compared with."""

    before: Step
    after: Step

    @property
    def lines(self) -> list[str]:
        """A unified diff of the sources; empty if they are equal."""
        old, new = (f"{step.kernel.name} in {step.file}" for step in (self.before, self.after))
        return list(unified_diff(self.before.source, self.after.source, old, new, lineterm=""))

    @property
    def instructions(self) -> dict[str, tuple[int, int]]:
        """The kinds of instructions whose numbers differ, before and after, those that differ most first."""
        before, after = (step.explained.code for step in (self.before, self.after))
        if before is None or after is None:
            return {}
        kinds = sorted({*before.kinds, *after.kinds})
        numbers = {kind: (before.kinds.get(kind, 0), after.kinds.get(kind, 0)) for kind in kinds}
        changed = {kind: pair for kind, pair in numbers.items() if pair[0] != pair[1]}
        return dict(sorted(changed.items(), key=lambda item: -abs(item[1][1] - item[1][0])))

    def sweeps(self, device: str, **axes: object) -> list[dict[str, object]]:
        """The sweeps of a config that measures both steps, in the blocks shown; ``axes`` are other keys."""
        found = []
        for step in (self.before, self.after):
            kernel, block = step.kernel, step.explained.case.block
            own = {"kernel": kernel.name, "block": str(block) if block else None}
            found += climb.sweeps(kernel.problem, device, **{**axes, **own})
        return found

    def measured(self, run: Run) -> Run:
        """The cases of a run that both steps have in common but for their blocks: in the blocks shown, or else in any.

        Raises:
            UsageError: if there are none.
        """
        both = {step.kernel.name: step.kernel for step in (self.before, self.after)}
        shown = {(step.kernel.name, step.explained.case.block) for step in (self.before, self.after)}
        of_both = (
            row
            for row in run.rows
            if registry.find(row.problem, row.kernel, row.case.kind, row.compiler) in both.values()
        )
        rows: list[Row] = []
        for group in grouped(of_both, lambda row: row.case.setting).values():
            if {row.kernel for row in group} == set(both):
                same = [row for row in group if (row.kernel, row.case.block) in shown]
                rows += same if {row.kernel for row in same} == set(both) else group
        if not rows:
            raise UsageError(f"{run.path}: has no case of both {' and '.join(both)}; give a run of the ladder")
        return run.only(rows)


def change(
    problem: str,
    step: str,
    *,
    n: int | None = None,
    dtype: str | None = None,
    b_layout: str | None = None,
    target: Target = UNKNOWN,
) -> Change:
    """What a step changes, each kernel in the first of its blocks.

    Args:
        problem: one that has a ladder.
        step: a step, compared with the one before it of the element type; or two steps separated by a comma.
        n, dtype, b_layout: size, element type and layout of B; the problem's and the step's default if None.
        target: the GPU on which some sizes depend, and the compute capability for machine code and occupancy.

    Raises:
        UsageError: for a problem without a ladder, what is no step of it, its first step, and a case that a kernel
            does not support.
    """
    climb.check(problem)
    kernels = {kernel.name: kernel for kernel in climb.steps(problem, "cuda")}
    names = list(kernels)
    chosen = parse_names(step, names, name="--diff", what=f"step of the {problem} ladder")
    if len(chosen) > 2:
        raise UsageError(f"--diff {step}: {len(chosen)} steps; give one, or two")
    if chosen == (names[0],):
        raise UsageError(f"--diff {step}: is the first step of the ladder; give {names[1]} or a later one")
    wanted = dtype or (kernels[chosen[-1]].dtypes or PROBLEMS[problem].dtypes)[0]
    if len(chosen) == 1:
        lower = names[: names.index(chosen[0])]
        chosen = (next((name for name in reversed(lower) if kernels[name].takes(wanted)), lower[-1]), *chosen)
    found = [cases(name, Axes(dtypes=wanted), n=n, b_layout=b_layout, device=target.device) for name in chosen]
    if any(len(each) > 1 for each in found):
        raise UsageError(f"--dtype {dtype}: give one element type with --diff")
    before, after = (_step(kernels[case.kernel], case, target.capability) for (case,) in found)
    return Change(before, after)


def _step(kernel: Kernel, case: Case, capability: str | None) -> Step:
    function = traceable(kernel, case).function
    file = Path(function.__code__.co_filename).name
    return Step(kernel, file, tuple(listing(function)), explained(case, capability))


def listing(kernel: Callable[..., None]) -> list[str]:
    """The lines of a kernel and of the device functions that it calls, without intrinsics.

    Above each function are the constants that it closes over, and the functions that it calls by another name than
    their own. Where one is made several times, such as per step along k, its lines are shown once, then its constants.
    """
    lines: list[str] = []
    shown: set[tuple[CodeType, str]] = set()
    functions: list[Callable[..., object]] = [kernel]
    for function in functions:  # grows by what each calls
        found = inspect.getclosurevars(function)
        known = dict(sorted({**found.globals, **found.nonlocals}.items()))
        constants = [f"{name} = {text}" for name, value in known.items() if (text := _text(value)) not in ("", name)]
        above, code = "\n".join(constants), function.__code__
        if (code, above) not in shown:
            again = any(code is other for other, _ in shown)
            source = f"def {function.__name__}: as above" if again else dedent(inspect.getsource(function))
            lines += [*above.splitlines(), *source.splitlines(), ""]
            shown.add((code, above))
        functions += dict.fromkeys(value for value in known.values() if _is_shown(value) and value not in functions)
    return lines[:-1]


def _text(value: object) -> str:
    """A constant, or a function's name; "" for modules, types and whatever else a kernel refers to."""
    if isinstance(value, FunctionType):
        return value.__name__
    return pformat(value, width=_WIDTH, compact=True) if isinstance(value, (int, str, tuple)) else ""


def _is_shown(value: object) -> TypeGuard[Callable[..., object]]:
    """Whether a value is a function that is a part of the kernel, and no intrinsic."""
    return isinstance(value, FunctionType) and not value.__module__.startswith((intrinsics.__name__, "numba"))
