"""What a comparison says: a verdict for every case, and what both sides were."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field, JsonValue, PlainSerializer, TypeAdapter

from smembench.model.case import Case
from smembench.model.errors import UsageError

CaseById = Annotated[Case, PlainSerializer(lambda case: case.id, return_type=str), Field(serialization_alias="case_id")]
"""A case that JSON has the id of."""
THRESHOLD = 0.02
FDR = 0.01
CONFIDENCE = 0.95
RUNS_AS_UNITS = 3
"""Runs on a side from which on the unit is a run."""


class Verdict(StrEnum):
    """How a case compares, in the order in which verdicts matter."""

    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"
    FASTER = "faster"
    NOT_COMPARABLE = "not comparable"
    SAME = "same"


@dataclass(frozen=True, slots=True)
class Side:
    """One case on one side of a comparison.

    ``elapsed_ms`` is the median over ``units`` of their medians, a unit being a round or a run (see
    ``smembench.studies.compare.pairing``). Both are None and 0 where the side has no time, ``sm_clock_mhz`` where the
    device told none.
    """

    elapsed_ms: float | None
    units: int
    sm_clock_mhz: float | None = None


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """One case on both sides.

    ``ratio`` is new over base, over 1 is slower; ``low`` and ``high`` bound it at the comparison's confidence. ``p``
    is the probability of a difference at least as large between identical distributions, ``q`` the smallest false
    discovery rate at which it counts (Benjamini–Hochberg over the cases). All five are None where the case is not
    comparable, the last four where there is nothing to tell the noise from. ``reason`` says why a verdict is
    ambiguous or not comparable; empty otherwise.
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


@dataclass(frozen=True, slots=True)
class Rules:
    """By what cases are judged, as fractions.

    ``threshold`` is the smallest effect that counts, ``fdr`` the false discovery rate over the cases of a comparison,
    ``confidence`` that of the intervals shown.

    Raises:
        UsageError: for a value that cannot be.
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


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in both environments: its name and its value on either side."""

    what: str
    base: str
    new: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sides, every case of either, and by which rules they were judged.

    ``cases`` are sorted by what matters: by verdict in the order of ``Verdict``, the greatest effect first. ``base``
    and ``new`` are run ids, ``only_base`` and ``only_new`` ids of cases the other side lacks;
    ``threshold``, ``fdr`` and ``confidence`` are its ``Rules``.
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

    @property
    def regressions(self) -> list[CaseComparison]:
        """The cases that are slower."""
        return [case for case in self.cases if case.verdict is Verdict.SLOWER]

    @property
    def caution(self) -> str:
        """What such verdicts do not tell, where there are any: that a run as a whole can be slower; else ""."""
        if max(len(self.base), len(self.new)) >= RUNS_AS_UNITS:
            return ""
        if not self.counts[Verdict.SLOWER] + self.counts[Verdict.FASTER]:
            return ""
        return (
            f"neither side has {RUNS_AS_UNITS} runs: what differs from run to run, and not within one, is not in the "
            "intervals; --aa says how much that is on a machine"
        )

    @property
    def counts(self) -> dict[Verdict, int]:
        """How many cases have each verdict; every verdict is a key."""
        found = Counter(case.verdict for case in self.cases)
        return {verdict: found[verdict] for verdict in Verdict}

    @property
    def data(self) -> dict[str, JsonValue]:
        """Plain data for JSON; cases by their ids."""
        return {"counts": dict(self.counts), **_COMPARISON.dump_python(self, mode="json", by_alias=True)}


_COMPARISON = TypeAdapter(Comparison)
