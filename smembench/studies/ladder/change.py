"""Changes from one step of the ladder to the next: functions, machine code and predicted counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from math import inf
from types import MappingProxyType

from smembench.explain.analysis import Explanation, numba_program
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.formats import element_type
from smembench.model.groups import grouped
from smembench.run.axes import parse_names, split
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.explain import UNKNOWN, Axes, Target, cases, explained
from smembench.studies.ladder import climb
from smembench.studies.ladder.listing import Part, listing, parts


@dataclass(frozen=True, slots=True)
class Step:
    """A step in one case: its functions, the kernel first, and its trace with the machine code."""

    kernel: Kernel
    parts: tuple[Part, ...]
    explained: Explanation


@dataclass(frozen=True, slots=True)
class Change:
    """A step and the one that it is compared with."""

    before: Step
    after: Step

    @property
    def lines(self) -> list[str]:
        """A unified diff of the sources; empty if they are equal."""
        old, new = (f"{step.kernel.name} in {step.parts[0].file}" for step in (self.before, self.after))
        return list(unified_diff(listing(self.before.parts), listing(self.after.parts), old, new, lineterm=""))

    @property
    def functions(self) -> list[tuple[Part | None, Part]]:
        """The functions whose lines differ, each with that of its name before, if any; the kernel first.

        Next come those in the kernel's file, which the step is about.
        """
        known = {part.name: part for part in reversed(self.before.parts)}
        kernel, *others = self.after.parts
        pairs = [(known.get(part.name), part) for part in others if "as above" not in part.source[0]]
        changed = [(old, new) for old, new in pairs if old is None or old.source != new.source]
        changed.sort(key=lambda pair: pair[1].file != kernel.file)
        return [(self.before.parts[0], kernel), *changed]

    @property
    def constants(self) -> dict[str, tuple[str, str]]:
        """The constants whose values differ, of functions that both steps have, before and after."""
        known = {part.name: part for part in reversed(self.before.parts)}
        kernel, *others = self.after.parts
        pairs = [(self.before.parts[0], kernel), *((known[part.name], part) for part in others if part.name in known)]
        changed: dict[str, tuple[str, str]] = {}
        for old, new in pairs:
            for name in old.constants.keys() & new.constants.keys():
                if old.constants[name] != new.constants[name]:
                    changed.setdefault(name, (old.constants[name], new.constants[name]))
        return dict(sorted(changed.items()))

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
        sweeps = []
        for step in (self.before, self.after):
            kernel, block = step.kernel, step.explained.case.block
            own = {"kernel": kernel.name, "block": str(block) if block else None}
            sweeps += climb.sweeps(kernel.problem, device, **{**axes, **own})
        return sweeps

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
    sizes: Mapping[str, int] = MappingProxyType({}),
    *,
    dtype: str | None = None,
    b_layout: str | None = None,
    target: Target = UNKNOWN,
) -> Change:
    """The change that a step makes, each kernel in the first of its blocks.

    Args:
        problem: one that has a ladder.
        step: a step, compared with the one before it of the element type; or two steps separated by a comma.
        sizes: by name, such as n, or the problem's default. Of few rows the ladder has more steps.
        dtype, b_layout: element type and layout of B; the step's default if None.
        target: the GPU on which some sizes depend, and the compute capability for machine code and occupancy.

    Raises:
        UsageError: for a problem without a ladder, what is no step of it, its first step, and a case that a kernel
            does not support.
    """
    climb.check(problem)
    kernels = {kernel.name: kernel for kernel in climb.steps(problem, "cuda", sizes.get("m", inf))}
    names = list(kernels)
    chosen = parse_names(step, names, name="--diff", what=f"step of the {problem} ladder")
    if len(chosen) > 2:
        raise UsageError(f"--diff {step}: {len(chosen)} steps; give one, or two")
    if chosen == (names[0],):
        raise UsageError(f"--diff {step}: is the first step of the ladder; give {names[1]} or a later one")
    wanted = dtype or (kernels[chosen[-1]].dtypes or PROBLEMS[problem].dtypes)[0]
    if len(chosen) == 1:
        place, first = names.index(chosen[0]), element_type(split(wanted)[0].lower())
        taking = [name for name in names if kernels[name].takes(first)]
        lower = [name for name in taking if name in names[:place]]
        if not lower:
            later = next((f"; give {name} or a later one" for name in taking if name in names[place + 1 :]), "")
            raise UsageError(f"--diff {step}: is the first step of the ladder in {first}{later}")
        chosen = (lower[-1], *chosen)
    by_step = [cases(name, Axes(dtypes=wanted), b_layout=b_layout, on=target, **sizes) for name in chosen]
    if any(len(of_step) > 1 for of_step in by_step):
        raise UsageError(f"--dtype {dtype}: give one element type with --diff")
    before, after = (_step(kernels[case.kernel], case, target.capability) for (case,) in by_step)
    return Change(before, after)


def _step(kernel: Kernel, case: Case, capability: str | None) -> Step:
    function = numba_program(kernel, case).function
    return Step(kernel, tuple(parts(function)), explained(case, capability))
