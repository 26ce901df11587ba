"""The result of a comparison: a verdict for every case, and what both sides were."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, PlainSerializer, TypeAdapter

from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.stats.threshold import THRESHOLD

CaseById = Annotated[Case, PlainSerializer(lambda case: case.id, return_type=str), Field(serialization_alias="case_id")]
"""A case that is stored in JSON as its id."""
MACHINE_CODE = "machine code"
FDR = 0.05
CONFIDENCE = 0.95


class Verdict(StrEnum):
    """Verdicts on a case, the most important first."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"
    FASTER = "faster"
    NOT_COMPARABLE = "not comparable"
    SAME = "same"


CHANGED = (Verdict.SLOWER, Verdict.FASTER)


@dataclass(frozen=True, slots=True)
class Side:
    """A case on one side of a comparison.

    ``elapsed_ms`` is the centre of its runs' centres (``stats.summary.centre``), a run's being that of its rounds'
    medians. ``units`` is the number of runs, or of rounds where two runs are compared and the variation between runs
    is unknown. They are None and 0 if the side has no time; ``sm_clock_mhz`` is None if it was not recorded.
    ``energy_mj`` per launch is the median of its runs', which have loads of seconds, its relative 95 % half-width the
    largest of theirs.
    """

    elapsed_ms: float | None
    units: int
    sm_clock_mhz: float | None = None
    energy_mj: float | None = None
    energy_uncertainty: float | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the environments: its name, and its value on each side. Machine code may be the same."""

    what: str
    base: str
    new: str

    def __str__(self) -> str:
        if self.what == MACHINE_CODE:
            return f"same {self.what}" if self.base == self.new else f"{self.what} changed"
        return f"{self.what} was {self.base}, is {self.new}"


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """A case on both sides.

    ``ratio`` is new over base, over 1 is slower; ``low`` and ``high`` bound it at the comparison's confidence.
    ``p`` is the probability of a difference at least as large between identical distributions, ``q`` the smallest
    false discovery rate at which it counts (Benjamini–Hochberg over the cases). All five are None if the case is
    not comparable, the last four if the noise is unknown. ``reason`` says why a verdict is ambiguous or not
    comparable, or that the clock is why a case is slower; empty otherwise. ``chance`` is the probability that it is
    slower by more than the threshold. ``noise`` is the standard deviation of the effect if nothing changed, as a
    fraction; None if it is unknown. ``held_against`` are the ids of the base's runs that the case was compared with, or
    would have been were it comparable, oldest first. ``alone`` is whether
    the variation between runs is unknown, so that only a large effect counts. ``open`` is whether newer runs than
    these were off their level, so that the case was slower or faster before, too. ``hidden`` is whether it would be
    slower or faster had similar cases not been off their level on some nights, and come back. ``causes`` may be why a
    case is slower or faster: they differ from all runs that it was compared with. ``other_device`` is whether it is not
    comparable for want of one device on both sides.
    """

    case: CaseById
    verdict: Verdict
    reason: str
    base: Side
    new: Side
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    noise: float | None = None
    chance: float | None = None
    held_against: Sequence[str] = ()
    alone: bool = False
    open: bool = False
    hidden: bool = False
    causes: Sequence[Difference] = ()
    other_device: bool = False

    @property
    def energy(self) -> tuple[float, float] | None:
        """The new energy per launch over the base's, and its relative 95 % half-width; None if one is unknown."""
        base, new = self.base, self.new
        if base.energy_mj and new.energy_mj and base.energy_uncertainty and new.energy_uncertainty:
            return new.energy_mj / base.energy_mj, math.hypot(base.energy_uncertainty, new.energy_uncertainty)
        return None

    @property
    def cause(self) -> str:
        """Possible causes of a change, the likeliest first, or that none is known; "" if it did not change."""
        if self.verdict not in CHANGED:
            return ""
        texts = list(map(str, self.causes))
        if not texts:
            return "nothing that is recorded changed"
        if texts == [f"same {MACHINE_CODE}"]:
            return f"{texts[0]}; nothing else that is recorded changed"
        return "; ".join(texts)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for verdicts, as fractions.

    ``threshold``: a case is slower or faster only if its true effect is beyond it, as far as the noise shows.
    ``fdr`` is the false discovery rate over the cases of a comparison, ``confidence`` that of the intervals shown.

    Raises:
        UsageError: for a value out of range.
    """

    threshold: float = THRESHOLD
    fdr: float = FDR
    confidence: float = CONFIDENCE

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < math.inf:
            raise UsageError(f"--threshold {100 * self.threshold:g}: give a percentage of 0 or more, such as 2")
        for name, value in (("--fdr", self.fdr), ("--confidence", self.confidence)):
            if not 0 < value < 1:
                raise UsageError(f"{name} {100 * value:g}: give a percentage between 0 and 100")

    @classmethod
    def of_percent(
        cls, threshold: float | None, *, fdr: float = 100 * FDR, confidence: float = 100 * CONFIDENCE
    ) -> Rules:
        """Rules from percentages; the default threshold for None."""
        return cls(THRESHOLD if threshold is None else threshold / 100, fdr / 100, confidence / 100)


RULES = Rules()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, every case of either, and the rules of the verdicts.

    ``cases`` are sorted by verdict, in the order of ``Verdict``, then by effect, the largest first. ``base`` and
    ``new`` are run ids, ``only_base`` and ``only_new`` ids of cases the other side lacks; ``threshold``, ``fdr``
    and ``confidence`` are its ``Rules``. ``alone`` is by kind of device the effect that a change must exceed besides,
    as a fraction, because the variation between runs is unknown; empty if it is known. ``shared`` is by device the
    fraction by which all its cases together are slower, and which every ratio leaves out, because nights differ by
    as much.
    """

    base: Sequence[str]
    new: Sequence[str]
    threshold: float
    fdr: float
    confidence: float
    environment: Sequence[Difference]
    only_base: Sequence[str]
    only_new: Sequence[str]
    cases: Sequence[CaseComparison]
    alone: Mapping[str, float] = field(default_factory=dict)
    shared: Mapping[str, float] = field(default_factory=dict)

    @property
    def regressions(self) -> list[CaseComparison]:
        """The cases that are slower."""
        return [case for case in self.cases if case.verdict is Verdict.SLOWER]

    @property
    def judged(self) -> int:
        """The number of cases that could be compared."""
        return len(self.cases) - self.counts[Verdict.NOT_COMPARABLE]

    @property
    def caution(self) -> str:
        """The limits of cases with one run on each side, without others; else ""."""
        if not self.alone:
            return ""
        over = " and ".join(
            f"{100 * effect:g} % on {'a GPU' if kind == 'cuda' else 'the CPU'}" for kind, effect in self.alone.items()
        )
        weighed = [case.alone for case in self.cases if case.p is not None]
        some = "" if all(weighed) else f"{sum(weighed)} of {len(weighed)} compared cases have "
        usable = "usable " if len(self.base) + len(self.new) > 2 else ""
        return (
            f"{some}one {usable}run on each side, weighed without others of this config on this device: "
            "the intervals do not include the noise between runs, so only changes over "
            f"{over} count; several runs on a side, such as last:7, or --aa, show that noise"
        )

    @property
    def counts(self) -> dict[Verdict, int]:
        """The number of cases per verdict; every verdict is a key."""
        tally = Counter(case.verdict for case in self.cases)
        return {verdict: tally[verdict] for verdict in Verdict}

    @property
    def data(self) -> dict[str, JsonValue]:
        """Plain data for JSON; cases by their ids."""
        return {"counts": dict(self.counts), **TypeAdapter(Comparison).dump_python(self, mode="json", by_alias=True)}
