"""Theoretical occupancy: how many blocks fit on a multiprocessor (SM) at once, and what keeps further ones out.

Sources: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability", for the limits;
cuda_occupancy.h of the CUDA 13.0 toolkit for units of allocation and the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

from smembench.model.hardware import WARP

MAX_THREADS = 1024
"""Threads of a block at most."""

MAX_REGISTERS = 255
"""32-bit registers of a thread at most."""

_REGISTERS = 64 * 1024  # of an SM, and of a block
_REGISTER_UNIT = 256  # a warp is given a multiple of these
_PARTITIONS = 4  # each with its own quarter of the registers, so that warps come in fours
_KIB = 1024


@dataclass(frozen=True, slots=True)
class _Limits:
    warps: int  # of an SM
    blocks: int  # of an SM
    shared_kib: int  # of an SM
    shared_unit: int = 128  # bytes; a block is given a multiple
    reserved: int = _KIB  # bytes the driver takes for each block

    @property
    def shared_per_block(self) -> int:
        """Bytes a block can have at most, by opting in: all of the SM's but those reserved."""
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


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks and warps resident on one SM, and the limit they reach first.

    limiter is "threads", "blocks", "shared memory" or "registers"; of equally tight ones the first in that order.
    """

    blocks: int
    warps: int
    max_warps: int
    limiter: str

    @property
    def fraction(self) -> float:
        """Resident warps over those an SM can hold, above 0 and at most 1."""
        return self.warps / self.max_warps


def occupancy(capability: str, threads: int, shared_bytes: int, registers: int | None) -> Occupancy:
    """Occupancy of a kernel, with as much of L1 as it likes carved out as shared memory.

    The launch has to opt in to more than 48 KiB of shared memory a block, which is dynamic then; that is left to it.

    Args:
        capability: compute capability, such as "9.0".
        threads: of a block.
        shared_bytes: static and dynamic shared memory of a block, without what the driver reserves.
        registers: 32-bit registers of a thread, None where they are unknown and are not to count.

    Raises:
        ValueError: for an unknown capability, or a block that can run on no SM of it.
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
    # In the order that decides between equally tight limits.
    fitting = {"threads": limits.warps // warps, "blocks": limits.blocks}
    allocated = _round_up(shared_bytes + limits.reserved, limits.shared_unit)
    if allocated:
        fitting["shared memory"] = limits.shared_kib * _KIB // allocated
    if registers is not None:
        fitting["registers"] = _blocks_by_registers(registers, warps)
    limiter = min(fitting, key=fitting.__getitem__)
    blocks = fitting[limiter]
    return Occupancy(blocks, blocks * warps, limits.warps, limiter)


def _blocks_by_registers(registers: int, warps: int) -> int:
    if not 1 <= registers <= MAX_REGISTERS:
        raise ValueError(f"a thread has 1 to {MAX_REGISTERS} registers, not {registers}")
    per_warp = _round_up(registers * WARP, _REGISTER_UNIT)
    # At launch a block is checked as if its warps filled the partitions evenly.
    if per_warp * _round_up(warps, _PARTITIONS) > _REGISTERS:
        raise ValueError(f"{warps} warps of {registers} registers a thread exceed the {_REGISTERS} of a block")
    return _REGISTERS // _PARTITIONS // per_warp * _PARTITIONS // warps


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
