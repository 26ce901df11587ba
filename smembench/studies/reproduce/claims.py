"""What the documents claim, held against samples of this device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from smembench.stats.summary import median_interval
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
    """Whether a claim holds: only where the confidence intervals of the two medians are apart."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim on this device: the ratio of medians, its bounds, and the samples they come from."""

    claim: Claim
    holds: Holds
    ratio: float
    low: float
    high: float
    samples: tuple[int, int]


def judge(claim: Claim, slower_ms: Sequence[float], faster_ms: Sequence[float]) -> Finding:
    """Hold a claim against samples of both kernels.

    The bounds divide the ends of the two medians' 95 % intervals, so both medians would have to lie outside
    theirs for the ratio to lie outside: the bounds cover it with more than 90 %.

    Raises:
        ValueError: when a side has no samples.
    """
    slow_low, slow_high = median_interval(slower_ms)
    fast_low, fast_high = median_interval(faster_ms)
    low, high = slow_low / fast_high, slow_high / fast_low
    holds = Holds.YES if low > 1 else Holds.NO if high < 1 else Holds.UNDECIDED
    return Finding(claim, holds, median(slower_ms) / median(faster_ms), low, high, (len(slower_ms), len(faster_ms)))
