"""The documents' claims, checked with samples from this device."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from smembench.stats.differs import Effect
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import difference
from smembench.studies.reproduce.figures import devices_of, ratio


@dataclass(frozen=True, slots=True)
class Claim:
    """``faster`` takes less time than ``slower``."""

    problem: str
    slower: str
    faster: str

    def documented(self) -> list[float]:
        """The ratio slower / faster on each device of the documents."""
        ratios = (ratio(self.problem, self.slower, self.faster, device) for device in devices_of(self.problem))
        return [value for value in ratios if value is not None]


CLAIMS: tuple[Claim, ...] = (
    Claim("transpose", slower="naiveGmem", faster="copyGmem"),
    Claim("transpose", slower="naiveGmem", faster="transposeSmem"),
    Claim("transpose", slower="transposeSmem", faster="transposeSmemPad"),
    Claim("matmul", slower="cpu", faster="naive"),
    Claim("matmul", slower="naive", faster="tiled"),
)


class Holds(StrEnum):
    """Whether a claim holds, by the rule of ``stats.differs``."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim on this device: how much slower the slower kernel is, and the number of samples of each."""

    claim: Claim
    effect: Effect
    samples: tuple[int, int]

    @property
    def holds(self) -> Holds:
        """Yes or no only if the difference is beyond the noise."""
        if not self.effect.differs:
            return Holds.UNDECIDED
        return Holds.YES if self.effect.ratio > 1 else Holds.NO


def judge(claim: Claim, run: Run, slower: Row, faster: Row) -> Finding | None:
    """Check a claim with two cases of a run; None if a case has no time or the noise is unknown."""
    effect = difference(run, faster, slower)
    return None if effect is None else Finding(claim, effect, (slower.samples, faster.samples))
