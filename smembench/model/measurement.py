"""What came out of a case: trials, one per round, and the measurement they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from statistics import median

from smembench.model.case import Case
from smembench.stats.summary import Summary


class Status(StrEnum):
    """How a case ended. Only ``OK`` carries figures."""

    OK = "ok"
    WRONG_RESULT = "wrong_result"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"


CROWDED = 0.05
"""Share of time without a core above which CPU samples are not trusted."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """The device's state around samples; None where the system gives no value.

    ``throttle_reasons`` is "none" when NVML was asked and saw none. ``other_processes`` counts compute processes
    of others on the GPU. The ``cpu_`` fields are of the host, for CPU cases; ``cpu_waiting`` is the time this
    process's threads could have run and were not given a core, over the time that passed.
    """

    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle_reasons: str | None = None
    other_processes: int | None = None
    cpu_mhz: float | None = None
    cpu_governor: str | None = None
    cpu_load: float | None = None
    cpu_waiting: float | None = None

    @property
    def throttled(self) -> bool:
        """Whether the clocks were held down when this was read."""
        return self.throttle_reasons not in (None, "none")

    @property
    def crowded(self) -> bool:
        """Whether other processes took the cores away often enough to show in the times."""
        return self.cpu_waiting is not None and self.cpu_waiting > CROWDED

    @property
    def disturbed(self) -> bool:
        """Whether samples taken in this state should be taken again."""
        return self.throttled or self.crowded


def merged(states: Sequence[Conditions]) -> Conditions:
    """One state for several: middle clocks, the highest of the rest, every throttle reason."""

    def numbers(name: str) -> list[float]:
        return [value for state in states if (value := getattr(state, name)) is not None]

    def whole(values: list[float]) -> int | None:
        return round(median(values)) if values else None

    reasons = [state.throttle_reasons for state in states if state.throttle_reasons is not None]
    seen = dict.fromkeys(name for reason in reasons if reason != "none" for name in reason.split("+"))
    highest_temperature = max(numbers("temperature_c"), default=None)
    others = max(numbers("other_processes"), default=None)
    return Conditions(
        sm_clock_mhz=whole(numbers("sm_clock_mhz")),
        memory_clock_mhz=whole(numbers("memory_clock_mhz")),
        temperature_c=None if highest_temperature is None else round(highest_temperature),
        power_w=max(numbers("power_w"), default=None),
        throttle_reasons="+".join(seen) if seen else "none" if reasons else None,
        other_processes=None if others is None else round(others),
        cpu_mhz=median(mhz) if (mhz := numbers("cpu_mhz")) else None,
        cpu_governor=next((state.cpu_governor for state in states if state.cpu_governor), None),
        cpu_load=max(numbers("cpu_load"), default=None),
        cpu_waiting=max(numbers("cpu_waiting"), default=None),
    )


@dataclass(frozen=True, slots=True)
class Resources:
    """What a thread of the kernel that ran has: 32-bit registers, and bytes of local memory, where spills go.

    None where there is no kernel, or its driver does not say.
    """

    registers: int | None = None
    local_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One case in one round: checked again, then sampled.

    ``samples`` are ms a launch; ``discarded`` counts samples thrown away because the device was disturbed,
    ``discarded_ms`` holds them, where the run kept them, and ``seconds`` is the time spent sampling.
    """

    case: Case
    round: int
    status: Status
    started_at_utc: str
    reason: str = ""
    verified: bool = False
    max_error: float | None = None
    samples: tuple[float, ...] = ()
    discarded: int = 0
    discarded_ms: tuple[float, ...] = ()
    seconds: float = 0.0
    conditions: Conditions = Conditions()
    resources: Resources = Resources()


def now_utc() -> str:
    """The time a trial begins at, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed value: milliseconds a launch, and the round and place it was taken in."""

    round: int
    index: int
    elapsed_ms: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a trace of the kernel says beside its time; None for what it does not do or cannot be traced.

    ``load_conflict`` and ``store_conflict`` are wavefronts over those of conflict-free requests to shared memory,
    ``load_sectors`` and ``store_sectors`` 32-byte sectors a request to global memory, ``occupancy`` a fraction,
    ``constant_addresses`` different addresses a request to constant memory.
    """

    load_conflict: float | None = None
    store_conflict: float | None = None
    load_sectors: float | None = None
    store_sectors: float | None = None
    occupancy: float | None = None
    constant_addresses: float | None = None


@dataclass(frozen=True, slots=True)
class Measurement:
    """A case, how it ended, and its samples.

    ``bytes_moved`` and ``flops`` are the problem's counts for one launch, the same for every kernel.
    ``max_error`` is the problem's error measure, None when nothing could be checked. ``precision`` is the
    relative half-width of the median's 95 % interval, ``converged`` whether it is as small as was asked.
    ``within_cache`` says that the arrays fit the device's last-level cache, so that bandwidth is the cache's.
    ``bytes_per_clock`` is those moved in shared memory a clock and multiprocessor; None for other memories.
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
    precision: float | None = None
    converged: bool | None = None
    within_cache: bool | None = None
    percent_of_peak: float | None = None
    bytes_per_clock: float | None = None
    conditions: Conditions = Conditions()
    prediction: Prediction = Prediction()
    resources: Resources = Resources()

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
