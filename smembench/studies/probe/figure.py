"""A figure of the data sheet: a measured property of a device, with its interval and how it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from smembench.model.measurement import Status
from smembench.stats.summary import median_interval


class Unverified(Exception):
    """A measurement whose own check failed: its time is not that of the work it was meant to time."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A property of a device.

    Attributes:
        name: what was measured, unique in its family.
        value, low, high: median of the trials and its 95 % interval; None unless ``status`` is ok.
        method: how it was measured.
        published: what others found, with the source and their device; None if nothing is known.
        status: skipped where the device lacks the feature.
        reason: why there is no value.
        family: the module that measured it.
    """

    name: str
    unit: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    method: str = ""
    published: str | None = None
    status: Status = Status.OK
    reason: str = ""
    family: str = ""

    @classmethod
    def of(cls, name: str, unit: str, samples: Sequence[float], method: str, published: str | None = None) -> Figure:
        """The median of the trials' samples with its interval."""
        return cls(name, unit, median(samples), *median_interval(samples), method, published)

    @classmethod
    def missing(cls, name: str, status: Status, reason: str) -> Figure:
        """A line that says why there is no figure."""
        return cls(name, status=status, reason=reason)


def verify(what: str, actual: object, expected: object) -> None:
    """Check what a measurement returned beside its time.

    Raises:
        Unverified: if it is not what was expected.
    """
    if actual != expected:
        raise Unverified(f"{what} is {actual}, not {expected}")


def at_least(what: str, value: float, least: float) -> None:
    """Check a measurement against what the hardware can do at best.

    Raises:
        Unverified: if it is less, so that not all of the work was done.
    """
    if value < least:
        raise Unverified(f"{what} are {value:.4g}, less than the {least:g} that the hardware takes")
