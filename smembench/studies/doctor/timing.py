"""The timers compared with Nsight Compute's gpu__time_duration.sum, the hardware's own clock.

Child processes run the same cases: five under ``ncu``, and five alone with samples such as every run takes. The time
of some kernels depends on where their arrays lie, and under ncu that may be elsewhere; so the five allocate different
amounts ahead of the arrays, and the range of either clock's readings shows what the place decides.
``--cache-control none`` corresponds to warm samples, ``all`` (every cache flushed and invalidated before each launch)
to cold ones. Clocks are not changed. With cupti-python a further child takes the same samples, and CUPTI's kernel
records of them in place of event times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from smembench.explain.kernel_records import why_missing
from smembench.explain.ncu import profile, sampled
from smembench.explain.ncu_child import Work
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import ROTATED, Block, Case
from smembench.model.errors import UsageError
from smembench.model.progress import unseen
from smembench.run.config import Config
from smembench.run.session import open_plan
from smembench.toolchains.settings import check_optimised

METRIC = "gpu__time_duration.sum"
ALLOWED_PERCENT, ALLOWED_US = 1.0, 0.25
"""Either is enough for agreement, beyond the range of ncu's readings: event times move by 0.13 µs by themselves."""
READINGS = 5
_APART_MIB = 48
"""How much more a reading's child allocates ahead of the arrays than that of the reading before."""
_LAUNCHES, _UNCOUNTED = 14, 4
_SAMPLES, _SECONDS = 10, 1.0


def _transpose(kernel: str, n: int, block: int) -> Case:
    pad = {"transposeSmem": 0, "transposeSmemPad": 1}.get(kernel)
    return Case("transpose", kernel, "cuda:0", "float32", n, n, None, Block(block, block), pad)


def _matmul(kernel: str, n: int, block: int) -> Case:
    return Case("matmul", kernel, "cuda:0", "float32", n, n, n, Block(block, block))


_CASES: tuple[Case, ...] = (
    _transpose("copyGmem", 256, 32),
    _transpose("copyGmem", 512, 32),
    _transpose("copyGmem", 1024, 32),
    _transpose("transposeSmemPad", 1024, 16),
    _transpose("copyGmem", 2048, 32),
    _matmul("tiled", 256, 32),
    _transpose("naiveGmem", 1024, 32),
    _transpose("transposeSmem", 2048, 32),
    _matmul("tiled", 512, 32),
    _transpose("copyGmem", 4096, 32),
    _transpose("naiveGmem", 4096, 32),
    _matmul("tiled", 1024, 32),
    _transpose("copyGmem", 8192, 16),
    _transpose("transposeSmemPad", 16384, 32),
    _matmul("tiled", 4096, 32),
    _matmul("naive", 6528, 32),
)
"""From about 2 µs to about 100 ms on an H200."""
CASES = tuple(replace(case, cache=cache) for cache in ("warm", "cold") for case in _CASES)


@dataclass(frozen=True, slots=True)
class Agreement:
    """A case in one cache mode, by both clocks, in µs; by CUPTI's kernel records where there are any.

    Attributes:
        ours: smembench's readings, each the median of a process's samples.
        theirs: ncu's, each the median of a process's launches; none without ncu.
    """

    case: Case
    ours: tuple[float, ...]
    theirs: tuple[float, ...] = ()
    cupti_us: float | None = None

    @property
    def ours_us(self) -> float:
        """The median of smembench's readings."""
        return median(self.ours)

    @property
    def ncu_us(self) -> float | None:
        """The median of ncu's readings."""
        return median(self.theirs) if self.theirs else None

    @property
    def difference_us(self) -> float | None:
        """smembench's time minus ncu's."""
        return None if self.ncu_us is None else self.ours_us - self.ncu_us

    @property
    def percent(self) -> float | None:
        """The difference in percent of ncu's time."""
        return None if self.ncu_us is None else 100 * (self.ours_us / self.ncu_us - 1)

    @property
    def agrees(self) -> bool | None:
        """True if smembench's time is within either bound of the range of ncu's readings."""
        if self.ncu_us is None:
            return None
        beyond = max(self.ours_us - max(self.theirs), min(self.theirs) - self.ours_us)
        return beyond <= max(ALLOWED_US, ALLOWED_PERCENT / 100 * self.ncu_us)


def cases_of(config: Config) -> list[Case]:
    """The cases of a config on the first GPU whose work is kernels, which a driver's copy is not, warm or cold.

    Raises:
        UsageError: if it has none.
        DeviceUnavailable: as ``open_plan``.
    """
    with open_plan(config) as (plan, _, _):
        cases = [item.case for item in plan if item.case.device == "cuda:0" and not item.skip]
    cases = [case for case in cases if case.kernel != PROBLEMS[case.problem].ceiling_kernel and case.cache != ROTATED]
    if not cases:
        raise UsageError(f"{config.name}: has no case on cuda:0, which ncu could time")
    return cases


def compare(cases: Sequence[Case], note: Callable[[str], None] = unseen) -> Iterator[Agreement]:
    """Measure every case both ways; ``note`` receives why there are no kernel records of CUPTI.

    Where Ctrl-C or an error ends the readings, the agreements at the places read until then come before it.

    Raises:
        UsageError: if ncu is missing or returns no figures, and CUPTI's Python library is missing, too; for a kernel
            that fails or is wrong, and for settings with which kernels are not optimised.
    """
    check_optimised()
    if why := why_missing():
        note(why)
    for cache, control in {"warm": "none", "cold": "all"}.items():
        if together := [case for case in cases if case.cache == cache]:
            readings = _Readings(together)
            try:
                readings.take(control, note, cupti=not why)
            finally:
                yield from readings.agreements()


@dataclass(slots=True)
class _Readings:
    """Readings of some cases: ncu's and our own by place, in µs, and CUPTI's records, in ms."""

    cases: Sequence[Case]
    theirs: list[Sequence[float]] = field(default_factory=list)
    ours: list[Sequence[float]] = field(default_factory=list)
    records: Sequence[float] = ()

    def take(self, control: str, note: Callable[[str], None], *, cupti: bool) -> None:
        """Read the clocks in turn; without CUPTI's records there are no readings without ncu's."""
        by_ncu = True
        for ahead_mib in (_APART_MIB * reading for reading in range(READINGS)):
            if by_ncu:
                work = Work(self.cases, _LAUNCHES, samples=1, ahead_mib=ahead_mib)
                try:
                    launches = profile(work, [METRIC], cache_control=control, uncounted=_UNCOUNTED)
                    self.theirs.append([counters[METRIC] / 1000 for counters in launches])
                except UsageError as error:
                    if not cupti:
                        raise
                    note(f"no times by ncu: {error}")
                    by_ncu = False
            times = sampled(Work(self.cases, _LAUNCHES, _SAMPLES, _SECONDS, ahead_mib=ahead_mib))
            self.ours.append([1000 * ms for ms in times])
        if cupti:
            try:
                self.records = sampled(Work(self.cases, _LAUNCHES, _SAMPLES, _SECONDS, records=True))
            except UsageError as error:
                note(f"no kernel records: {error}")

    def agreements(self) -> Iterator[Agreement]:
        """The cases at the places that our own clock has read, if any."""
        for number, case in enumerate(self.cases if self.ours else ()):
            ours = tuple(place[number] for place in self.ours)
            theirs = tuple(place[number] for place in self.theirs[: len(ours)])
            yield Agreement(case, ours, theirs, 1000 * self.records[number] if self.records else None)
