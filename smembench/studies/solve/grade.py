"""Grade a student's file: run its kernel on fresh random numbers, compare the results, and look at its accesses."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from smembench.explain.costs import Costs
from smembench.explain.ptx.content import element
from smembench.explain.ptx.numba_launch import run_numba
from smembench.launches.python_file import kernel_in
from smembench.model.errors import SmembenchError, UsageError
from smembench.studies.solve.exercise import Array, Exercise, Fault, Launch
from smembench.toolchains.numba import TOOLCHAIN

_SECONDS = 20
_MOST_STEPS = 20_000
"""Instructions of a block: ten times as many as any solution runs."""
_KINDS = {"outside": "out of bounds", "race": "race", "barrier": "divergent barrier", "unwritten": "nothing to load"}
_POISON = np.uint32(0x7FC0DEAD)
"""A NaN that no arithmetic gives."""


@dataclass(frozen=True, slots=True)
class Grade:
    """Whether the results are right, all that is wrong with its line of the source, and the figures by name."""

    right: bool
    faults: tuple[tuple[Fault, str], ...]
    figures: Mapping[str, float]

    @property
    def solved(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults


def graded(exercise: Exercise, path: Path) -> Grade:
    """The grade of a file.

    Raises:
        SmembenchError: for a file that cannot be imported or compiled or does not end, and without a compiler.
    """
    try:
        with _at_most(_SECONDS):
            return _graded(exercise, kernel_in(f"{path}:{exercise.kernel}"))
    except UsageError as error:
        text = str(error)
        if missing := TOOLCHAIN.unavailable():
            how = missing if TOOLCHAIN.install in missing else f"{TOOLCHAIN.install} ({missing})"
            raise SmembenchError(f"grading needs NVIDIA's compiler libraries: {how}") from None
        raise SmembenchError(text if text.startswith(str(path)) else f"{path}: {text}") from None
    except TimeoutError as error:
        raise SmembenchError(f"{path}: {error}") from None


def _graded(exercise: Exercise, kernel: Any) -> Grade:
    launches = exercise.launches(np.random.default_rng())
    done = [_launched(kernel, launch) for launch in launches]
    wrong = next(filter(None, (wrong for _, wrong in done)), None)
    mistakes = next(filter(None, (costs.trace.mistakes for costs, _ in done)), ())
    unknown = {each for costs, _ in done for each in costs.trace.unfollowed}
    costs = done[0][0]
    faults = [
        *([Fault(0, wrong)] if wrong else []),
        *(Fault(each.line, f"{_KINDS[each.kind]}: {each.text}") for each in mistakes),
        *(Fault(each.line, f"not graded: {each.text}") for each in sorted(unknown)),
        *(fault for demand, most in exercise.demands.items() for fault in demand.faults(costs, most)),
    ]
    figures = {demand.name: demand.figure(costs) for demand in exercise.demands}
    figures["mistakes"] = len(mistakes) + bool(wrong)
    sourced = tuple((fault, costs.trace.source(fault.line) if fault.line else "") for fault in faults)
    return Grade(not wrong, sourced, figures)


def _launched(kernel: Any, launch: Launch) -> tuple[Costs, str]:
    """The costs of a launch, and what is wrong with its result; "" if nothing is."""
    out = np.full(launch.expected.shape, _POISON).view(np.float32)
    inputs = [each.copy() for each in launch.inputs]
    costs = run_numba(kernel, [out, *inputs], grid=launch.grid, block=launch.block, most_steps=_MOST_STEPS)
    for number, (one, other) in enumerate(zip(inputs, launch.inputs, strict=True), 2):
        if not np.array_equal(one, other):
            return costs, f"argument {number} is changed, which the kernel should only read"
    return costs, _wrong(next(iter(signature(kernel).parameters)), out, launch)


def _wrong(name: str, out: Array, launch: Launch) -> str:
    """The first wrong element, and how many there are; "" for none."""
    wrong = np.flatnonzero(out.ravel() != launch.expected.ravel())
    if not len(wrong):
        return ""
    first = int(wrong[0])
    got, expected = out.ravel()[first], launch.expected.ravel()[first]
    said = "nothing is stored there" if got.view(np.uint32) == _POISON else f"got {got:g}"
    return (
        f"wrong result: {name}[{element(out.shape, first)}]: expected {expected:g}, {said} "
        f"({len(wrong)} of {out.size} wrong; input {launch.size})"
    )


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Stop what takes longer, in the main thread."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"did not end within {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
