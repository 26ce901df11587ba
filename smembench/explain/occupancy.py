"""Theoretical occupancy: how many blocks fit on a multiprocessor (SM) at once, and which limit they reach.

Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability", for the limits;
cuda_occupancy.h of the CUDA 13.0 toolkit for units of allocation and the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from smembench.model.device import Limits
from smembench.model.hardware import MAX_THREADS, STATIC_SHARED_BYTES, WARP

MAX_REGISTERS = 255
"""Most 32-bit registers per thread."""

_REGISTERS = 64 * 1024  # per SM, and most per block
_REGISTER_UNIT = 256  # a warp is allocated a multiple
_PARTITIONS = 4  # of an SM, each with a quarter of the registers
_KIB = 1024


@dataclass(frozen=True, slots=True)
class _Limits:
    warps: int  # per SM
    blocks: int  # per SM
    shared_kib: int  # per SM
    shared_unit: int = 128  # bytes; a block is allocated a multiple
    reserved: int = _KIB  # bytes that the driver reserves per block

    @property
    def shared_per_block(self) -> int:
        """Most bytes per block, with opt-in: all of the SM's except those reserved."""
        return self.shared_kib * _KIB - self.reserved


_LIMITS = {
    "7.0": _Limits(64, 32, 96, shared_unit=256, reserved=0),
    "7.5": _Limits(32, 16, 64, shared_unit=256, reserved=0),
    "8.0": _Limits(64, 32, 164),
    "8.6": _Limits(48, 16, 100),
    "8.7": _Limits(48, 16, 164),
    "8.9": _Limits(48, 24, 100),
    "9.0": _Limits(64, 32, 228),
    "10.0": _Limits(64, 32, 228),
    "12.0": _Limits(48, 24, 100),
}

CAPABILITIES = tuple(_LIMITS)
"""Compute capabilities whose limits are known."""

MOST_SHARED_BYTES = max(limits.shared_per_block for limits in _LIMITS.values())
"""Shared memory that a block can have on some GPU."""

ANY_GPU = Limits(
    free_bytes=2**62,
    max_threads=MAX_THREADS,
    max_block=(1024, 1024),
    max_grid=(2**31 - 1, 2**16 - 1),
    max_shared_bytes=STATIC_SHARED_BYTES,
    max_dynamic_bytes=MOST_SHARED_BYTES,
)
"""Limits that no GPU exceeds, memory aside."""


def shared_memory(capability: str) -> tuple[int, int] | None:
    """Bytes of shared memory of an SM, and the most that a block gets of them; None for an unknown capability."""
    limits = _LIMITS.get(capability)
    return None if limits is None else (limits.shared_kib * _KIB, limits.shared_per_block)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks and warps resident per SM, and the limit that they reach first.

    ``limiter`` is "threads", "blocks", "shared memory" or "registers"; of equally tight limits the first in that order.
    ``room`` is the bytes of shared memory that a block may take more while as many are resident.
    """

    blocks: int
    warps: int
    max_warps: int
    limiter: str
    room: int = field(default=0, compare=False)

    @property
    def fraction(self) -> float:
        """Resident warps over the most that an SM can hold, above 0 and at most 1."""
        return self.warps / self.max_warps


def occupancy(capability: str, threads: int, shared_bytes: int, registers: int | None) -> Occupancy:
    """Occupancy of a kernel, with the largest share of L1 configured as shared memory.

    More than 48 KiB of shared memory per block has to be dynamic, and the launch has to opt in; that is not checked.

    ``shared_bytes`` are those of a block, static and dynamic, without what the driver reserves; ``registers`` are those
    of a thread, of 32 bits, and None ignores that limit.

    Raises:
        ValueError: for an unknown capability, or a block that cannot run on it.
    """
    limits = _LIMITS.get(capability)
    if limits is None:
        raise ValueError(f"compute capability {capability} is not among {', '.join(_LIMITS)}")
    if not 1 <= threads <= MAX_THREADS:
        raise ValueError(f"a block has 1 to {MAX_THREADS} threads, not {threads}")
    if not 0 <= shared_bytes <= limits.shared_per_block:
        raise ValueError(
            f"a block has 0 to {limits.shared_per_block} bytes of shared memory on {capability}, not {shared_bytes}"
        )
    warps = -(-threads // WARP)
    # Of equally tight limits the first counts.
    fitting = {"threads": limits.warps // warps, "blocks": limits.blocks}
    allocated = _round_up(shared_bytes + limits.reserved, limits.shared_unit)
    if allocated:
        fitting["shared memory"] = limits.shared_kib * _KIB // allocated
    if registers is not None:
        fitting["registers"] = _blocks_by_registers(registers, warps)
    limiter = min(fitting, key=fitting.__getitem__)
    blocks = fitting[limiter]
    largest = limits.shared_kib * _KIB // max(blocks, 1) // limits.shared_unit * limits.shared_unit - limits.reserved
    room = min(largest, limits.shared_per_block) - shared_bytes
    return Occupancy(blocks, blocks * warps, limits.warps, limiter, room)


def _blocks_by_registers(registers: int, warps: int) -> int:
    if not 1 <= registers <= MAX_REGISTERS:
        raise ValueError(f"a thread has 1 to {MAX_REGISTERS} registers, not {registers}")
    per_warp = _round_up(registers * WARP, _REGISTER_UNIT)
    # A launch checks a block as if its warps filled the partitions evenly.
    if per_warp * _round_up(warps, _PARTITIONS) > _REGISTERS:
        raise ValueError(f"{warps} warps of {registers} registers per thread exceed the {_REGISTERS} of a block")
    return _REGISTERS // _PARTITIONS // per_warp * _PARTITIONS // warps


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
