"""Which roof a launch hits: the least time that memory, on-chip memory and arithmetic each take for their part of it.

The roofline model (Williams, Waterman and Patterson, Roofline, Communications of the ACM 52(4), 2009) in times instead
of rates, so that it holds for kernels that compute nothing. Memory carries the compulsory bytes at its peak, as if no
cache held any of them before; arithmetic does the FLOPs at its own. L1 and shared memory are one unit, which serves a
wavefront per clock on each multiprocessor, up to 128 bytes, be they needed or not (CUDA C++ Programming Guide, "Shared
Memory": 32 banks, each 32 bits a clock; Nsight Compute Kernel Profiling Guide: wavefronts are processed on different
cycles), so bank conflicts and broadcasts cost what they cost. Wavefronts are those of the source: a compiler that
merges loads makes do with fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smembench.model.device import DeviceInfo
from smembench.model.hardware import WAVEFRONT_BYTES
from smembench.model.peaks import flops_per_clock, peak_gflop_s

ON_CHIP = "L1 and shared memory"
MEMORY = "memory"
ARITHMETIC = "arithmetic"


@dataclass(frozen=True, slots=True)
class Work:
    """What one launch has to do.

    ``memory_bytes`` are compulsory bytes of device memory, ``wavefronts`` those of all shared accesses and the fewest
    that global ones take.
    """

    dtype: str
    memory_bytes: int
    wavefronts: float
    flops: int

    @property
    def on_chip_bytes(self) -> float:
        """Bytes that L1 and shared memory could deliver in the wavefronts."""
        return WAVEFRONT_BYTES * self.wavefronts


@dataclass(frozen=True, slots=True)
class Roof:
    """One limit: bytes (B) or FLOP of a launch, and the peak in as many a second, None where it is not known."""

    name: str
    amount: float
    unit: str
    peak: float | None

    @property
    def milliseconds(self) -> float | None:
        """The least time of a launch under this roof alone."""
        return None if self.peak is None else 1e3 * self.amount / self.peak


def roofs(work: Work, info: DeviceInfo | None) -> list[Roof]:
    """The roofs that a launch has work for; without a device none of their peaks is known."""
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


def _giga(value: float | None) -> float | None:
    return None if value is None else 1e9 * value


def lowest(found: Sequence[Roof]) -> tuple[Roof, float] | None:
    """The roof a launch hits, with its ms; None unless every peak is known."""
    times = [roof.milliseconds for roof in found]
    known = [(roof, ms) for roof, ms in zip(found, times, strict=True) if ms is not None]
    return max(known, key=lambda item: item[1]) if known and len(known) == len(found) else None


def ridge(dtype: str, info: DeviceInfo) -> float | None:
    """FLOPs a byte of memory from which on arithmetic, not memory, is the lower roof; None where a peak is unknown."""
    peak = peak_gflop_s(dtype, info)
    return None if peak is None or info.peak_gb_s is None else peak / info.peak_gb_s


def on_chip_share(work: Work, capability: str | None) -> float | None:
    """The fraction of the arithmetic peak that L1 and shared memory leave, at most 1, on any GPU of a capability.

    Both peaks go with multiprocessors and clock, so neither is needed. None without FLOPs, and where the compute
    capability is not known.
    """
    rate = flops_per_clock(work.dtype, capability)
    if rate is None or not work.flops or not work.wavefronts:
        return None
    return min(work.flops / work.wavefronts / rate, 1.0)
