"""The verdict on a fleet: which devices are slow, in what, and what cannot be known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from smembench.model.errors import FAILED, INCOMPARABLE, REGRESSION, UsageError
from smembench.stats.threshold import THRESHOLD
from smembench.store.schema import Row
from smembench.studies.fleet.members import Fleet, Member


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a verdict, as fractions.

    Attributes:
        threshold: a device is slow only if it is slower than normal variation explains around a device that is slower
            by the threshold.
        false_alarms: the share of normal devices that is named, in any metric and against anything.

    Raises:
        UsageError: for a value out of range.
    """

    threshold: float = THRESHOLD
    false_alarms: float = 0.001

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < math.inf:
            raise UsageError(f"--threshold {100 * self.threshold:g}: give a percentage of 0 or more, such as 2")
        if not 0 < self.false_alarms < 1:
            raise UsageError(f"--false-alarms {100 * self.false_alarms:g}: give a percentage between 0 and 100")


RULES = Rules()


class Against(StrEnum):
    """References that a device can be slower than."""

    FLEET = "the fleet"
    HISTORY = "its own history"


@dataclass(frozen=True, slots=True)
class Distance:
    """Distance of a device from its reference, as a fraction: 0.03 is 3 % slower, below 0 is faster.

    ``low`` and ``high`` are its 95 % interval: against the fleet what the noise of its own rounds leaves, against its
    history also that between runs. ``p`` is adjusted over all tests of the device, each metric against the fleet and
    against its history (Benjamini and Hochberg): the chance that a normal device has any so small is at most ``p``.
    """

    size: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric of one device.

    Attributes:
        row: what was measured, with the state of the device.
        centre_ms: of the rounds' medians, as the group's median is of such centres.
        fleet: distance to the median of its group; None in a group of fewer than three.
        history: distance to its own earlier runs; None without any.
    """

    row: Row
    centre_ms: float
    fleet: Distance | None = None
    history: Distance | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a group.

    Attributes:
        name: as ``members.metric`` gives it.
        median_ms: over the group.
        spread: standard deviation between normal devices as a fraction; None for fewer than three.
        limit: a device is told from the others if it is slower by more in this metric alone, as a fraction; less is
            enough if it is slow in several. None for fewer than three.
        figures: in the order of the group's members; None for a device without this figure.
    """

    name: str
    median_ms: float
    spread: float | None
    limit: float | None
    figures: Sequence[Figure | None]


@dataclass(frozen=True, slots=True)
class Group:
    """The devices of one model that have figures."""

    model: str
    members: Sequence[Member]
    metrics: Sequence[Metric]


@dataclass(frozen=True, slots=True)
class Reason:
    """A metric in which a device is slow."""

    metric: str
    against: Against
    distance: Distance


@dataclass(frozen=True, slots=True)
class Slow:
    """A slow device: why, the largest distance first, and what else was seen on it, such as a throttle reason."""

    member: Member
    reasons: Sequence[Reason]
    seen: Sequence[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A fleet's verdict.

    Attributes:
        groups: by model, in the order of the fleet.
        slow: the slowest first.
        unknown: sentences on what cannot be known, such as which of two devices is the slow one.
        rules: the threshold and the error rate.
    """

    fleet: Fleet
    groups: Sequence[Group]
    slow: Sequence[Slow]
    unknown: Sequence[str]
    rules: Rules

    @property
    def uncompared(self) -> list[Member]:
        """The devices compared with nothing: without figures, or the only one of a model and without earlier runs."""
        compared = {
            member.identity
            for group in self.groups
            for place, member in enumerate(group.members)
            if len(group.members) > 1
            or any((figure := one.figures[place]) is not None and figure.history for one in group.metrics)
        }
        return [member for member in self.fleet.members if member.identity not in compared]

    @property
    def exit_code(self) -> int:
        """3 if a device is slow, else 1 if one or a case failed, else 5 if one is compared with nothing, else 0."""
        if self.slow:
            return REGRESSION
        if any(member.failed for member in self.fleet.members):
            return FAILED
        return INCOMPARABLE if self.uncompared else 0
