"""The roofline model in times: the least time that a launch needs for memory, for on-chip memory and for arithmetic.

The model (Williams, Waterman and Patterson, Roofline, Communications of the ACM 52(4), 2009) is in times instead of
rates, so that it also covers kernels without FLOPs. Memory moves the compulsory bytes at its peak, as if no cache
had any of them; arithmetic does the FLOPs at its peak. L1 and shared memory are one unit, which serves one wavefront
of up to 128 bytes per clock on each multiprocessor (CUDA C++ Programming Guide, "Shared Memory": 32 banks, each 32 bits
per clock; Nsight Compute Kernel Profiling Guide: wavefronts are processed on different cycles). So bank conflicts and
broadcasts cost time. Where the machine code is not known the wavefronts are those of the source: a compiler that merges
loads needs fewer. wgmma's operands are among them, as they are among those that hardware counts of the unit. What the
TMA writes to shared memory and reads there is in no such counter, and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smembench.explain.costs import Costs
from smembench.model.device import DeviceInfo
from smembench.model.hardware import WAVEFRONT_BYTES
from smembench.model.peaks import flops_per_clock, peak_gflop_s

ON_CHIP = "L1 and shared memory"
MEMORY = "memory"
ARITHMETIC = "arithmetic"


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a launch.

    Attributes:
        memory_bytes: compulsory bytes of device memory.
        wavefronts: of all shared accesses and of the operands of wgmma, and the fewest for all global ones.
    """

    dtype: str
    memory_bytes: int
    wavefronts: float
    flops: int

    @property
    def on_chip_bytes(self) -> float:
        """Bytes that L1 and shared memory could deliver in these wavefronts."""
        return WAVEFRONT_BYTES * self.wavefronts


@dataclass(frozen=True, slots=True)
class Roof:
    """A limit: bytes (B) or FLOP per launch, and the peak per second; None if unknown."""

    name: str
    amount: float
    unit: str
    peak: float | None

    @property
    def milliseconds(self) -> float | None:
        """The least time of a launch under this roof."""
        return None if self.peak is None else 1e3 * self.amount / self.peak


def roofs(work: Work, info: DeviceInfo | None) -> list[Roof]:
    """The roofs for which a launch has work; without a device their peaks are unknown."""
    memory = on_chip = arithmetic = None
    if info is not None:
        memory, arithmetic = _giga(info.peak_gb_s), _giga(peak_gflop_s(work.dtype, info))
        if info.sm_count is not None and info.sm_clock_max_mhz is not None:
            on_chip = WAVEFRONT_BYTES * info.sm_count * info.sm_clock_max_mhz * 1e6
    limits = (
        Roof(MEMORY, work.memory_bytes, "B", memory),
        Roof(ON_CHIP, work.on_chip_bytes, "B", on_chip),
        Roof(ARITHMETIC, work.flops, "FLOP", arithmetic),
    )
    return [roof for roof in limits if roof.amount]


def work_of(explained: Costs) -> Work:
    """The work of a launch whose FLOPs are unknown: arrays once through memory, and wavefronts."""
    return Work(
        dtype="",
        memory_bytes=round(sum(access.compulsory for access in explained.traffic)),
        wavefronts=sum(access.of_all for access in explained.shared)
        + sum(access.wavefronts for access in explained.traffic),
        flops=0,
    )


def _giga(value: float | None) -> float | None:
    return None if value is None else 1e9 * value


def lowest(limits: Sequence[Roof]) -> tuple[Roof, float] | None:
    """The roof that a launch hits, with its ms; None unless all peaks are known."""
    times = [roof.milliseconds for roof in limits]
    known = [(roof, ms) for roof, ms in zip(limits, times, strict=True) if ms is not None]
    return max(known, key=lambda item: item[1]) if known and len(known) == len(limits) else None


def ridge(dtype: str, info: DeviceInfo) -> float | None:
    """FLOPs per byte of memory above which arithmetic is the lower roof; None if a peak is unknown."""
    peak = peak_gflop_s(dtype, info)
    return None if peak is None or info.peak_gb_s is None else peak / info.peak_gb_s


def on_chip_share(work: Work, capability: str | None) -> float | None:
    """The fraction of the arithmetic peak that L1 and shared memory allow, at most 1.

    It is the same on every GPU of a compute capability, because both peaks scale with multiprocessors and clock.
    None without FLOPs, and if the capability is unknown.
    """
    rate = flops_per_clock(work.dtype, capability)
    if rate is None or not work.flops or not work.wavefronts:
        return None
    return min(work.flops / work.wavefronts / rate, 1.0)
