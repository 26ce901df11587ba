"""A lesson and its experiments: what is run, where it can be run, and what it should show."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from smembench.kernels.numba_cuda import SIMULATED, cuda
from smembench.model.errors import UsageError
from smembench.run.axes import unknown
from smembench.studies.lesson import LESSONS
from smembench.toolchains.nvvm import compiling

Needs = Literal["gpu", "threads", "nothing"]
"""``gpu``: nothing else shows it; ``threads``: a GPU, or Numba's simulator where there is none."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Outcome of an experiment, and whether it was the expected one; None if it cannot be run here."""

    text: str
    as_expected: bool | None


@dataclass(frozen=True, slots=True)
class Experiment:
    """A row of a lesson.

    Attributes:
        what: what is run.
        expected: what it should show: what the document says, or what was computed.
        run: runs it the given number of times, in a process of its own; a device is selected there.
        unless: why it may show something else, such as newer hardware than the document's; without a reason that is
            a failure.
        hangs: whether it is expected never to end.
        seconds: when it is killed.
    """

    what: str
    expected: str
    run: Callable[[int], Observation]
    needs: Needs = "threads"
    unless: str = ""
    hangs: bool = False
    seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class Lesson:
    """Experiments on a document's listing.

    Attributes:
        why: what they teach, in one sentence.
        check: how what they show is found.
    """

    document: str
    experiments: tuple[Experiment, ...]
    why: str
    check: str


def launcher(kernel: Callable[..., None], grid: Any, block: Any) -> Callable[..., None]:
    """A launch by Numba, of arrays on the host or on the device; the first one compiles."""
    launch: Callable[..., None] = cuda.jit(kernel)[grid, block]

    def enqueue(*arguments: Any) -> None:
        with nullcontext() if SIMULATED else compiling(kernel):
            launch(*arguments)

    return enqueue


def load(name: str) -> Lesson:
    """The lesson of that name.

    Raises:
        UsageError: if there is none.
    """
    if name not in LESSONS:
        raise UsageError(f"lesson {name!r}: {unknown(name, list(LESSONS), 'lesson')}")
    lesson: Lesson = import_module(f"smembench.studies.lesson.{name}").LESSON
    return lesson
