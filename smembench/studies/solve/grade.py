"""Grade a student's file: run its kernel on fresh random numbers, compare the results, and look at its accesses."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

import numpy as np

from smembench.explain.costs import Costs
from smembench.explain.ptx.content import element
from smembench.explain.ptx.numba_launch import NumbaPtx
from smembench.launches.python_file import kernel_in
from smembench.model.child import captured, child_command
from smembench.model.errors import SmembenchError, UsageError
from smembench.model.text import ended
from smembench.studies.solve.exercise import Array, Exercise, Fault, Launch
from smembench.studies.solve.exercises import EXERCISES
from smembench.toolchains.numba import TOOLCHAIN

_SECONDS = 20
_MOST_STEPS = 20_000
"""Instructions of a block: ten times as many as any solution runs."""
_KINDS = {"outside": "out of bounds", "barrier": "divergent barrier", "unwritten": "nothing to load"}
"""Kinds of mistakes by other names than their own."""
_POISON = np.uint32(0x7FC0DEAD)
"""A NaN that no arithmetic gives."""


@dataclass(frozen=True, slots=True)
class Grade:
    """A grade: whether results are right, the faults with their lines of the source, and the figures by name."""

    right: bool
    faults: tuple[tuple[Fault, str], ...]
    figures: Mapping[str, float]

    @property
    def solved(self) -> bool:
        """True if nothing is wrong."""
        return not self.faults


def graded(exercise: Exercise, path: Path) -> Grade:
    """The grade of a file.

    Raises:
        SmembenchError: for a file that cannot be imported or compiled or does not end, and without a compiler.
    """
    try:
        return _graded(exercise, kernel_in(f"{path}:{exercise.kernel}"))
    except UsageError as error:
        reason = str(error)
        if missing := TOOLCHAIN.unavailable():
            how = missing if TOOLCHAIN.install in missing else f"{TOOLCHAIN.install} ({missing})"
            raise SmembenchError(f"grading needs NVIDIA's compiler libraries: {how}") from None
        raise SmembenchError(reason if reason.startswith(str(path)) else f"{path}: {reason}") from None


def graded_apart(exercise: Exercise, path: Path) -> Grade:
    """The same from a process of its own, which the file may end, or never end.

    Raises:
        SmembenchError: as ``graded``, and for a file that does.
    """
    try:
        grading = captured(child_command("smembench.studies.solve.grade", exercise.name, path), timeout=_SECONDS)
    except TimeoutExpired:
        raise SmembenchError(f"{path}: did not end within {_SECONDS:g} s") from None
    print(grading.stderr, end="", file=sys.stderr)
    try:
        outcome = json.loads(grading.stdout)
    except ValueError:
        raise SmembenchError(f"{path}: the process that graded it {ended(grading.returncode)}") from None
    if "error" in outcome:
        raise SmembenchError(outcome["error"])
    faults = tuple((Fault(*fault), source) for fault, source in outcome["faults"])
    return Grade(outcome["right"], faults, outcome["figures"])


def _graded(exercise: Exercise, kernel: Any) -> Grade:
    launches = exercise.launches(np.random.default_rng())
    ptx = NumbaPtx(kernel, [_poisoned(launches[0]), *launches[0].inputs])
    ran = [_launched(ptx, launch) for launch in launches]
    wrong = next(filter(None, (wrong for _, wrong in ran)), None)
    mistakes = next(filter(None, (costs.trace.mistakes for costs, _ in ran)), ())
    unknown = {left_out for costs, _ in ran for left_out in costs.trace.unfollowed}
    costs = ran[0][0]
    faults = [
        *([Fault(0, wrong)] if wrong else []),
        *(Fault(mistake.line, f"{_KINDS.get(mistake.kind, mistake.kind)}: {mistake.text}") for mistake in mistakes),
        *(Fault(left_out.line, f"not graded: {left_out.text}") for left_out in sorted(unknown)),
        *(fault for demand, limit in exercise.demands.items() for fault in demand.faults(costs, limit)),
    ]
    figures = {demand.name: demand.figure(costs) for demand in exercise.demands}
    figures["mistakes"] = len(mistakes) + bool(wrong)
    sourced = tuple((fault, costs.trace.source(fault.line) if fault.line else "") for fault in faults)
    return Grade(not wrong, sourced, figures)


def _launched(ptx: NumbaPtx, launch: Launch) -> tuple[Costs, str]:
    """The costs of a launch, and what is wrong with its result, "" for nothing."""
    out = _poisoned(launch)
    inputs = [array.copy() for array in launch.inputs]
    costs = ptx.run([out, *inputs], grid=launch.grid, block=launch.block, most_steps=_MOST_STEPS)
    name, *read = ptx.parameters
    for argument, before, after in zip(read, launch.inputs, inputs, strict=True):
        if not np.array_equal(before, after):
            return costs, f"wrong result: {argument} is changed, which the kernel should only read"
    return costs, _wrong(name, out, launch)


def _poisoned(launch: Launch) -> Array:
    return np.full(launch.expected.shape, _POISON).view(np.float32)


def _wrong(name: str, out: Array, launch: Launch) -> str:
    """The first wrong element and the number of wrong elements, "" for none."""
    wrong = np.flatnonzero(out.ravel() != launch.expected.ravel())
    if not len(wrong):
        return ""
    first = int(wrong[0])
    got, expected = out.ravel()[first], launch.expected.ravel()[first]
    stored = "nothing is stored there" if got.view(np.uint32) == _POISON else f"got {got:g}"
    return (
        f"wrong result: {name}[{element(out.shape, first)}]: expected {expected:g}, {stored} "
        f"({len(wrong)} of {out.size} wrong; input {launch.size})"
    )


def main() -> None:
    """The process that grades a file, whose own prints are on stderr."""
    name, path = sys.argv[1:]
    with redirect_stdout(sys.stderr):
        try:
            outcome: dict[str, Any] = asdict(graded(EXERCISES[name], Path(path)))
        except SmembenchError as error:
            outcome = {"error": str(error)}
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
