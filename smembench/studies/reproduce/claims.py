"""The documents' claims, checked with samples from this device."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from smembench.stats.differs import Effect
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
    NO = "NO"
    UNDECIDED = "undecided"


def holds(effect: Effect) -> Holds:
    """Yes or no only if the effect of the slower kernel against the faster one is beyond the noise."""
    if not effect.differs:
        return Holds.UNDECIDED
    return Holds.YES if effect.ratio > 1 else Holds.NO
