"""The protocol of devices: what the runner needs of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, Protocol

from smembench.kernels.kernel import Kernel
from smembench.model.case import ROTATED, Case
from smembench.model.device import DeviceInfo, Limits
from smembench.model.measurement import Conditions, Resources
from smembench.model.problem import Problem

if TYPE_CHECKING:
    from smembench.model.problem import Array

GUARD_BYTES = 1024
"""Poisoned bytes on either side of an output, which a correct kernel does not write to."""
POISON = 0xFF
"""The byte that fills an output before a kernel runs: NaN in every float format, -1 in int32."""
ALIGNMENT = 512
"""Bytes to which arrays inside an allocation are aligned, cudaMalloc's least alignment."""
MOST_COPIES = 1024
"""Most copies of a case's arrays, so that one graph has a launch on each."""


def copies_of(case: Case, array_bytes: int, flush_bytes: int) -> int:
    """The number of copies of its arrays, of ``array_bytes`` bytes, that a case's launches take in turn.

    With cache rotated there are enough that, between two launches on a copy, the others use more than a flush reads.
    """
    return 1 + ceil(flush_bytes / max(array_bytes, 1)) if case.cache == ROTATED else 1


def with_copies(size: int, copies: int) -> int:
    """Bytes of an array of ``size`` bytes with its copies."""
    return size if copies == 1 else copies * aligned(size)


def aligned(size: int) -> int:
    """The distance between copies of an array."""
    return -(-size // ALIGNMENT) * ALIGNMENT


class Sampler(Protocol):
    """A source of samples. A sample takes a few milliseconds, or one launch if that is longer."""

    def take(self) -> float:
        """An elapsed time in ms per launch."""


class Load(Protocol):
    """Launches back to back: their ends overlap, so that they take less time each than one launch by itself."""

    def batches(self, seconds: float) -> Iterator[tuple[int, float]]:
        """Launch for ``seconds``; of each batch the number of launches and the ms per launch, once it is over."""

    def close(self) -> None:
        """Release what it needed."""


class Prepared(Protocol):
    """A compiled case with its arrays on the device."""

    def poison(self) -> None:
        """Fill the output and its guards with ``POISON``."""

    def launch(self) -> None:
        """Run the kernel once, on each copy of its arrays, and wait for it."""

    def output(self) -> Array:
        """The output, copied to the host.

        Raises:
            OutOfBounds: if the kernel wrote to a guard.
        """

    def outputs(self) -> Iterator[Array]:
        """The output, and those of further copies of the arrays; raises as ``output``."""
        yield self.output()

    def inputs(self) -> Iterator[tuple[int, Array]]:
        """The inputs that kernels have had so far, by their number, as they are now."""

    def resources(self) -> Resources:
        """Registers and local memory per thread, known after a launch; empty for CPU functions and library calls."""

    def sampler(self, warmup: float) -> Sampler:
        """A source of samples in the case's cache mode, after ``warmup`` seconds of launches."""

    def load(self) -> Load | None:
        """A load of its launches; None where launches back to back would not be those that are timed."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for readers of its times."""
        return ()

    def close(self) -> None:
        """Release the output and what timing needed."""


class Device(Protocol):
    """A GPU or the CPU, opened."""

    @property
    def info(self) -> DeviceInfo:
        """The device's properties."""

    def limits(self) -> Limits:
        """Limits of the cases it can run, and its free memory now."""

    def reserve(self, sizes: Sequence[int]) -> None:
        """Reserve memory for the largest output and the largest inputs of the run, in bytes, the output first."""

    def prepare(self, case: Case, kernel: Kernel, problem: Problem, inputs: tuple[Array, ...]) -> Prepared:
        """Compile the kernel and place copies of the inputs; the same ``inputs`` object is placed only once."""

    def conditions(self) -> Conditions:
        """Clocks, temperature and load now."""

    def close(self) -> None:
        """Release everything."""


class OutOfBounds(Exception):
    """A kernel wrote outside its output."""


def check_guards(before: Array, after: Array, name: str = "its output", byte: int = POISON) -> None:
    """Check the guards around an array.

    Raises:
        OutOfBounds: if one is no longer the byte that they were filled with.
    """
    for side, guard in (("before", before), ("after", after)):
        if (guard.view("u1") != byte).any():
            raise OutOfBounds(f"the kernel wrote outside {name}, {side} it")
