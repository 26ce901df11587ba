"""Bank conflicts of shared memory, compute capability 5.0 and later: 32 banks, with successive 4-byte words in turn.

Lanes that access the same word share one access; of several stores to one address, one wins, at no extra cost. Source,
for up to 4 bytes per lane: CUDA C++ Programming Guide, "Compute Capability 5.x", section "Shared Memory", to which the
sections of later capabilities refer. Definition of a wavefront: Nsight Compute Kernel Profiling Guide, "Memory Tables".
Addresses and widths are as in ``active_lanes``, which raises ValueError for what cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence

from smembench.explain.warp import active_lanes
from smembench.model.hardware import BANKS, WARP, WORD_BYTES


def bank_of(address: int) -> int:
    """The bank, 0 to 31, that holds a byte address of shared memory.

    Raises:
        ValueError: for a negative address.
    """
    if address < 0:
        raise ValueError(f"address {address} is negative")
    return address // WORD_BYTES % BANKS


def wavefronts(addresses: Sequence[int | None], width: int) -> int:
    """Passes through shared memory that serve a request: the most distinct words that any bank has to deliver.

    Elements of 8 bytes are served per half-warp (lanes 0-15, 16-31), elements of 16 bytes per quarter-warp (8 lanes).
    NVIDIA's guides no longer document this: the Programming Guide did for capability 2.x; for later ones NVIDIA's staff
    and measurements confirm it. Hardware may need fewer wavefronts for wide loads if lanes share words (on 7.x if all
    lanes n and n^1, or n and n^2, have equal addresses: NVIDIA's staff in the developer forum, "Unexpected shared
    memory bank conflict"). No guide documents that, so it is not modelled: for wide loads of shared words the result is
    an upper bound.
    """
    parts = _words(addresses, width)
    return sum(max(map(len, banks)) for banks in parts.values())


def served(addresses: Sequence[int | None], width: int) -> list[list[int]]:
    """The lanes that each wavefront of a request completes, wavefront by wavefront.

    A bank delivers its words in the order of the lanes that ask for them. That order is chosen for a picture: no guide
    tells the hardware's.
    """
    parts = _words(addresses, width)
    turns = {
        lane: max(
            parts[_part(lane, width)][bank_of(byte)][byte // WORD_BYTES]
            for byte in range(address, address + width, WORD_BYTES)
        )
        for lane, address in active_lanes(addresses, width)
    }
    return [
        [lane for lane, at in turns.items() if at == turn and _part(lane, width) == part]
        for part, banks in parts.items()
        for turn in range(max(map(len, banks)))
    ]


def ideal_wavefronts(addresses: Sequence[int | None], width: int) -> int:
    """Wavefronts without conflicts: one per part of the warp that has an active lane.

    A full warp needs 1 for elements of up to 4 bytes, 2 for 8 bytes, 4 for 16 bytes. Without an active lane it is 0.
    """
    return len({_part(lane, width) for lane, _ in active_lanes(addresses, width)})


def conflict_degree(addresses: Sequence[int | None], width: int) -> float:
    """Wavefronts over ideal wavefronts: 1 without conflicts or without an active lane, 32 at worst."""
    ideal = ideal_wavefronts(addresses, width)
    return wavefronts(addresses, width) / ideal if ideal else 1.0


def is_broadcast(addresses: Sequence[int | None], width: int) -> bool:
    """Whether at least two lanes are active, all in the same 4-byte word, or in the same wider element."""
    active = active_lanes(addresses, width)
    # Aligned, so that elements of several words are the same when their first words are.
    return len(active) > 1 and len({address // WORD_BYTES for _, address in active}) == 1


def worst_part(addresses: Sequence[int | None], width: int) -> tuple[range, list[set[int]]]:
    """The lanes of the part of the warp that takes most wavefronts, and the distinct words that they need of each bank.

    Raises:
        ValueError: without an active lane.
    """
    parts = _words(addresses, width)
    if not parts:
        raise ValueError("no lane is active")
    part, banks = max(parts.items(), key=lambda found: max(map(len, found[1])))
    lanes = min(WARP, BANKS * WORD_BYTES // width)
    return range(part * lanes, (part + 1) * lanes), list(map(set, banks))


def _part(lane: int, width: int) -> int:
    """The part of the warp that is served together with this lane; a part's lanes fill the banks once."""
    return lane // min(WARP, BANKS * WORD_BYTES // width)


def _words(addresses: Sequence[int | None], width: int) -> dict[int, list[dict[int, int]]]:
    """By part of the warp, the distinct words that each bank has to deliver, with the place of each in its bank."""
    parts: dict[int, list[dict[int, int]]] = {}
    for lane, address in active_lanes(addresses, width):
        banks = parts.setdefault(_part(lane, width), [{} for _ in range(BANKS)])
        for byte in range(address, address + width, WORD_BYTES):
            words = banks[bank_of(byte)]
            words.setdefault(byte // WORD_BYTES, len(words))
    return parts
