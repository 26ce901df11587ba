"""Measurement: what came out of a case."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from smembench.case import Case
from smembench.timing.summary import Summary


class Status(StrEnum):
    """How a case ended. Only ``OK`` carries figures."""

    OK = "ok"
    WRONG_RESULT = "wrong_result"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed value: milliseconds a launch, and the round and place it was taken in."""

    round: int
    index: int
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class Conditions:
    """The device's state around the samples; None where the system gives no value."""

    sm_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle_reasons: str | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """A case, how it ended, and its samples.

    ``bytes_moved`` and ``flops`` are the problem's counts for one launch, the same for every kernel.
    ``max_error`` is the problem's error measure, None when nothing could be checked.
    """

    case: Case
    status: Status
    started_at_utc: str
    bytes_moved: int
    flops: int
    shared_bytes: int
    reason: str = ""
    verified: bool = False
    max_error: float | None = None
    samples: tuple[Sample, ...] = ()
    conditions: Conditions = Conditions()
    peak_gb_s: float | None = None

    @property
    def ok(self) -> bool:
        """Whether the case was verified and timed."""
        return self.status is Status.OK

    @property
    def failed(self) -> bool:
        """Whether the case should make the process exit with 1: neither ok nor skipped on purpose."""
        return self.status not in (Status.OK, Status.SKIPPED)

    @property
    def summary(self) -> Summary | None:
        """Median, quartiles and range of the samples in ms; None unless the case is ok."""
        return Summary.of([sample.elapsed_ms for sample in self.samples]) if self.ok else None

    @property
    def effective_gb_s(self) -> float | None:
        """Bytes moved over the median time, in 10^9 bytes a second."""
        return None if (summary := self.summary) is None else self.bytes_moved / summary.median / 1e6

    @property
    def gflop_s(self) -> float | None:
        """Floating-point operations over the median time, in 10^9 a second; None where there are none."""
        summary = self.summary
        return None if summary is None or not self.flops else self.flops / summary.median / 1e6
