"""Bank conflicts of shared memory, compute capability 5.0 and later: 32 banks, with successive 4-byte words in turn.

Lanes that access the same word share one access; of several stores to one address, one wins, at no extra cost. Source,
for up to 4 bytes per lane: CUDA C++ Programming Guide, "Compute Capability 5.x", section "Shared Memory", to which the
sections of later capabilities refer. Definition of a wavefront: Nsight Compute Kernel Profiling Guide, "Memory Tables".
Wide accesses are served in parts of the warp: see ``lanes_together``. A load of matrices (``ldmatrix``) is one of 16
bytes per lane: each eight lanes have the rows of a matrix of eight rows of 16 bytes (PTX ISA, "ldmatrix"), which are
served together.
Addresses and widths are as in ``active_lanes``, which raises ValueError for what cannot be; ``kind`` is the access
site's: load, store or atomic.
"""

from __future__ import annotations

from collections.abc import Sequence

from smembench.explain.warp import active_lanes
from smembench.model.hardware import BANKS, WARP, WORD_BYTES


def bank_of(address: int) -> int:
    """The bank, 0 to 31, of a byte address of shared memory.

    Raises:
        ValueError: for a negative address.
    """
    if address < 0:
        raise ValueError(f"address {address} is negative")
    return address // WORD_BYTES % BANKS


def lanes_together(addresses: Sequence[int | None], width: int, kind: str) -> int:
    """Consecutive lanes that are served together: 32, 16 or 8, a part of the warp.

    Elements of up to 4 bytes are served by the whole warp, of 8 bytes by half-warps, of 16 by quarter-warps: what fills
    the banks once. Loads of 8 and 16 bytes are served by parts twice as large if all lanes n and n^1 of the warp have
    equal addresses, or all lanes n and n^2; inactive lanes do not count. It takes the whole warp: half-warps that share
    in different ways are not enough.

    No guide says so; NVIDIA's staff named the two conditions for compute capability 7.x in the developer forum
    ("Unexpected shared memory bank conflict"). Random requests counted on an H200 and an H100 (compute capability
    9.0) have no exception: results/reference/h200-shared-requests.csv, and …-shared-requests-doctor.csv of both.
    """
    active = dict(active_lanes(addresses, width))
    lanes = min(WARP, BANKS * WORD_BYTES // width)

    def equal(other: int) -> bool:
        return all(active.get(lane ^ other, address) == address for lane, address in active.items())

    return 2 * lanes if kind == "load" and lanes < WARP and (equal(1) or equal(2)) else lanes


def wavefronts(addresses: Sequence[int | None], width: int, kind: str) -> int:
    """Passes through shared memory that serve a request: per part, the most distinct words that any bank delivers."""
    parts = _words(addresses, width, kind)
    return sum(max(map(len, banks)) for banks in parts.values())


def served(addresses: Sequence[int | None], width: int, kind: str) -> list[list[int]]:
    """The lanes that each wavefront of a request completes, wavefront by wavefront.

    A bank delivers its words in the order of the lanes that ask for them. The hardware's order is undocumented; this
    one is for a picture.
    """
    parts, lanes = _words(addresses, width, kind), lanes_together(addresses, width, kind)
    turns = {
        lane: max(
            parts[lane // lanes][bank_of(byte)][byte // WORD_BYTES]
            for byte in range(address, address + width, WORD_BYTES)
        )
        for lane, address in active_lanes(addresses, width)
    }
    return [
        [lane for lane, at in turns.items() if at == turn and lane // lanes == part]
        for part, banks in parts.items()
        for turn in range(max(map(len, banks)))
    ]


def ideal_wavefronts(addresses: Sequence[int | None], width: int, kind: str) -> int:
    """Wavefronts without conflicts: one per part of the warp that has an active lane.

    A full warp needs 1 for elements of up to 4 bytes, 2 for 8 bytes, 4 for 16 bytes, and half as many for wide loads
    whose lanes share addresses in pairs. Without an active lane it is 0.
    """
    lanes = lanes_together(addresses, width, kind)
    return len({lane // lanes for lane, _ in active_lanes(addresses, width)})


def conflict_degree(addresses: Sequence[int | None], width: int, kind: str) -> float:
    """Wavefronts over ideal wavefronts: 1 without conflicts or without an active lane, 32 at worst."""
    ideal = ideal_wavefronts(addresses, width, kind)
    return wavefronts(addresses, width, kind) / ideal if ideal else 1.0


def is_broadcast(addresses: Sequence[int | None], width: int) -> bool:
    """True if at least two lanes are active, all in the same 4-byte word or the same wider element."""
    active = active_lanes(addresses, width)
    # Aligned, so that elements of several words are the same when their first words are.
    return len(active) > 1 and len({address // WORD_BYTES for _, address in active}) == 1


def worst_part(addresses: Sequence[int | None], width: int, kind: str) -> tuple[range, list[set[int]]]:
    """The lanes of the part of the warp that takes most wavefronts, and the distinct words that they need of each bank.

    Raises:
        ValueError: without an active lane.
    """
    parts, lanes = _words(addresses, width, kind), lanes_together(addresses, width, kind)
    if not parts:
        raise ValueError("no lane is active")
    part, banks = max(parts.items(), key=lambda item: max(map(len, item[1])))
    return range(part * lanes, (part + 1) * lanes), list(map(set, banks))


def _words(addresses: Sequence[int | None], width: int, kind: str) -> dict[int, list[dict[int, int]]]:
    """The distinct words that each bank has to deliver, with the place of each in its bank, by part of the warp."""
    lanes = lanes_together(addresses, width, kind)
    parts: dict[int, list[dict[int, int]]] = {}
    for lane, address in active_lanes(addresses, width):
        banks = parts.setdefault(lane // lanes, [{} for _ in range(BANKS)])
        for byte in range(address, address + width, WORD_BYTES):
            words = banks[bank_of(byte)]
            words.setdefault(byte // WORD_BYTES, len(words))
    return parts
