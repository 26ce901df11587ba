"""Results of a case: one ``Trial`` per round, combined into a ``Measurement``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from statistics import median
from typing import Annotated, Any

from annotated_types import Interval

from smembench.model.case import Case
from smembench.model.ranges import Count, Milliseconds, Ratio, Reading, WholeReading
from smembench.model.sustained import Moment
from smembench.stats.summary import Summary, uncertainty


class Status(StrEnum):
    """The outcome of a case. Only ``OK`` has figures."""

    OK = "ok"
    WRONG_RESULT = "wrong_result"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"


POWER_LIMIT = "sw_power_cap"
"""The throttle reason of a GPU that draws as much power as it may."""

CROWDED = 0.05
"""Share of time spent waiting for a core above which CPU samples are not trusted."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The device's state while samples were taken; None where the system gives no value.

    Attributes:
        throttle_reasons: joined by ``+``; "none" if NVML reports none.
        other_processes: number of other compute processes on the GPU.
        cpu_mhz, cpu_governor, cpu_load: the host's, for CPU cases.
        cpu_waiting: time that this process's threads waited for a core, divided by elapsed time.
        ecc_corrected, ecc_uncorrected: memory errors that ECC found since the driver was loaded.
        pcie_generation, pcie_width: of the link as it is now, in lanes; a resting GPU may lower both.
        nvlinks_up: number of NVLinks that are up.
        energy_j: that the GPU took since the driver was loaded; several states as one have none.
    """

    sm_clock_mhz: WholeReading | None = None
    memory_clock_mhz: WholeReading | None = None
    temperature_c: WholeReading | None = None
    power_w: Reading | None = None
    throttle_reasons: str | None = None
    other_processes: WholeReading | None = None
    cpu_mhz: Reading | None = None
    cpu_governor: str | None = None
    cpu_load: Reading | None = None
    cpu_waiting: Reading | None = None
    ecc_corrected: WholeReading | None = None
    ecc_uncorrected: WholeReading | None = None
    pcie_generation: WholeReading | None = None
    pcie_width: WholeReading | None = None
    nvlinks_up: WholeReading | None = None
    energy_j: Reading | None = None

    @property
    def throttled(self) -> bool:
        """True if the clocks were throttled."""
        return self.throttle_reasons not in (None, "none")

    @property
    def at_power_limit(self) -> bool:
        """True if the power limit is the only disturbance: more samples of the same load would meet it again."""
        return self.throttle_reasons == POWER_LIMIT and not self.crowded

    @property
    def crowded(self) -> bool:
        """True if other processes used the cores enough to affect the times."""
        return self.cpu_waiting is not None and self.cpu_waiting > CROWDED

    @property
    def disturbed(self) -> bool:
        """True if samples taken in this state are upper bounds."""
        return self.throttled or self.crowded


def merged(states: Sequence[Conditions]) -> Conditions:
    """Several states as one: the median of each clock, the worst of other figures, every throttle reason.

    The PCIe generation is the highest, because the link rests in a lower one between transfers.
    """

    def known(name: str) -> list[Any]:
        return [value for state in states if (value := getattr(state, name)) is not None]

    def clock(name: str) -> int | None:
        return round(median(mhz)) if (mhz := known(name)) else None

    reasons = known("throttle_reasons")
    seen = dict.fromkeys(name for reason in reasons if reason != "none" for name in reason.split("+"))
    highest = ("temperature_c", "power_w", "other_processes", "cpu_load", "cpu_waiting", "pcie_generation")
    errors, lowest = ("ecc_corrected", "ecc_uncorrected"), ("pcie_width", "nvlinks_up")
    return Conditions(
        sm_clock_mhz=clock("sm_clock_mhz"),
        memory_clock_mhz=clock("memory_clock_mhz"),
        throttle_reasons="+".join(seen) if seen else "none" if reasons else None,
        cpu_mhz=median(mhz) if (mhz := known("cpu_mhz")) else None,
        cpu_governor=next(iter(known("cpu_governor")), None),
        **{name: max(known(name), default=None) for name in (*highest, *errors)},
        **{name: min(known(name), default=None) for name in lowest},
    )


@dataclass(frozen=True, slots=True)
class Resources:
    """Per thread of the kernel that ran: 32-bit registers, and bytes of local memory, which holds spilled registers.

    ``code_hash`` is that of its machine code. None for CPU functions and library calls, or if the driver does not say.
    """

    registers: Count | None = None
    local_bytes: Count | None = None
    code_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A case in one round: its result is checked, then it is sampled.

    Attributes:
        reason: why the status is not ``OK``.
        max_error: the problem's error measure; None if nothing could be checked.
        samples: ms per launch.
        discarded: number of samples discarded because the device was disturbed.
        discarded_ms: the discarded samples; older journals do not have them.
        seconds: time spent sampling.
        notes: what a reader of its times has to know, such as that nobody checked the result.
        moments: of a load of seconds, which takes the place of samples in a round of its own.
    """

    case: Case
    round: Count
    status: Status
    started_at_utc: str
    reason: str = ""
    verified: bool = False
    max_error: Annotated[float, Interval(ge=0)] | None = None
    samples: tuple[Milliseconds, ...] = ()
    discarded: Count = 0
    discarded_ms: tuple[Reading, ...] = ()
    seconds: Ratio = 0.0
    conditions: Conditions = Conditions()
    resources: Resources = Resources()
    notes: tuple[str, ...] = ()
    moments: tuple[Moment, ...] = ()


def moment(text: str) -> datetime:
    """A point in time as results store it; in UTC if it names no zone.

    Raises:
        ValueError: for anything else.
    """
    timestamp = datetime.fromisoformat(text)
    return timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)


def now_utc() -> str:
    """The current time as results store it: ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Sample:
    """A timed value in ms per launch, with its round and its index in the round."""

    round: int
    index: int
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Figures from a trace of the kernel; None for accesses that it does not make, and if it cannot be traced.

    Attributes:
        load_conflict, store_conflict: wavefronts of shared requests, relative to conflict-free ones.
        load_sectors, store_sectors: 32-byte sectors per global request.
        occupancy: theoretical occupancy, a fraction.
        constant_addresses: distinct addresses per constant request.
        load_line, store_line: of the shared access with the most wavefronts in conflict; None without conflicts.
        unexplained: why a kernel cannot be traced that has source, if it cannot.
    """

    load_conflict: float | None = None
    store_conflict: float | None = None
    load_sectors: float | None = None
    store_sectors: float | None = None
    occupancy: float | None = None
    constant_addresses: float | None = None
    load_line: int | None = None
    store_line: int | None = None
    unexplained: str | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """A case, how it ended, and its samples from all rounds.

    Attributes:
        bytes_moved, flops: the problem's counts per launch, the same for every kernel.
        shared_bytes: size of the kernel's tile.
        reason: why the status is not ``OK``.
        max_error: the problem's error measure; None if nothing could be checked.
        ci_width: relative half-width of the samples' 95 % interval; the column ``precision`` of cases.csv.
        converged: whether ``ci_width`` reached its target.
        within_cache: whether the arrays fit the last-level cache, so that the bandwidth is the cache's.
        percent_of_peak: of the peak that bounds the problem.
        bytes_per_clock: shared-memory bytes per clock and multiprocessor; None for problems of other memories.
        notes: its trials' notes, joined by "; ".
        moments: the batches of its load of seconds.
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
    rounds: int = 0
    discarded: int = 0
    ci_width: float | None = None
    converged: bool | None = None
    within_cache: bool | None = None
    percent_of_peak: float | None = None
    bytes_per_clock: float | None = None
    conditions: Conditions = Conditions()
    prediction: Prediction = Prediction()
    resources: Resources = Resources()
    notes: str | None = None
    moments: tuple[Moment, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the case was verified and timed."""
        return self.status is Status.OK

    @property
    def summary(self) -> Summary | None:
        """Median, quartiles and range of the samples in ms; None unless the case is ok."""
        return Summary.of([sample.elapsed_ms for sample in self.samples]) if self.ok else None

    @property
    def uncertainty(self) -> float | None:
        """Relative half-width of the median's 95 % interval over the rounds; None unless the case is ok."""
        return uncertainty(self.by_round.values()) if self.ok else None

    @property
    def by_round(self) -> dict[int, list[float]]:
        """The samples in ms by round."""
        rounds: dict[int, list[float]] = {}
        for sample in self.samples:
            rounds.setdefault(sample.round, []).append(sample.elapsed_ms)
        return rounds

    @property
    def effective_gb_s(self) -> float | None:
        """Bytes moved over the median time, in 10^9 bytes per second; None if there are none."""
        summary = self.summary
        return None if summary is None or not self.bytes_moved else self.bytes_moved / summary.median / 1e6

    @property
    def gflop_s(self) -> float | None:
        """Floating-point operations over the median time, in 10^9 per second; None if there are none."""
        summary = self.summary
        return None if summary is None or not self.flops else self.flops / summary.median / 1e6
