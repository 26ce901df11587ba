"""The protocol of a device: what the runner needs, and nothing about how it is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from smembench.kernels.registry import Kernel
from smembench.model.case import Case
from smembench.model.device import DeviceInfo, Limits
from smembench.model.measurement import Conditions, Resources
from smembench.model.problem import Problem

if TYPE_CHECKING:
    from smembench.model.problem import Array

GUARD_BYTES = 1024
"""Poisoned bytes on either side of an output, which a correct kernel leaves alone."""
POISON = 0xFF
"""The byte outputs are filled with before a kernel runs: NaN in every float format, -1 in int32."""


class Sampler(Protocol):
    """A source of samples; one call takes a device some milliseconds, or one launch if that is longer."""

    def take(self) -> float:
        """An elapsed time in ms a launch."""


class Prepared(Protocol):
    """One case, compiled, with its arrays on the device."""

    def poison(self) -> None:
        """Fill the output and its guards with ``POISON``."""

    def launch(self) -> None:
        """Run the kernel once and wait for it."""

    def output(self) -> Array:
        """The output, copied to the host.

        Raises:
            OutOfBounds: when the kernel wrote into a guard.
        """

    def resources(self) -> Resources:
        """What a thread of the kernel has, once it was launched; nothing on the CPU and for a library's function."""

    def sampler(self, warmup: float) -> Sampler:
        """A source of samples in the case's cache mode, after ``warmup`` seconds of launches."""

    def close(self) -> None:
        """Release the output and whatever timing needed."""


class Device(Protocol):
    """Somewhere kernels run."""

    @property
    def info(self) -> DeviceInfo:
        """What it is."""

    def limits(self) -> Limits:
        """What it can run now."""

    def reserve(self, sizes: Sequence[int]) -> None:
        """Set memory aside for the largest output and the largest inputs that are to come, in bytes."""

    def prepare(self, case: Case, kernel: Kernel, problem: Problem, inputs: tuple[Array, ...]) -> Prepared:
        """Compile the kernel and place the arrays. The same ``inputs`` object is placed only once."""

    def conditions(self) -> Conditions:
        """Clocks, temperature and the like, now."""

    def close(self) -> None:
        """Release everything."""


class OutOfBounds(Exception):
    """A kernel wrote outside its output."""


def check_guards(before: Array, after: Array) -> None:
    """Look at the bytes around an output.

    Raises:
        OutOfBounds: when one of them is not ``POISON`` any more.
    """
    for side, guard in (("before", before), ("after", after)):
        if (guard.view("u1") != POISON).any():
            raise OutOfBounds(f"the kernel wrote outside its output, {side} it")
