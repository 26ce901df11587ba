"""A memory request by a warp: a byte address per lane, None for inactive lanes."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.model.hardware import LINE_BYTES, WARP, WAVEFRONT_BYTES

WIDTHS = (1, 2, 4, 8, 16)
"""Possible bytes per lane and instruction (PTX ISA, ``ld``: .b8 to .b64, and vectors of up to 128 bits)."""

STEPS = {"global": LINE_BYTES, "shared": WAVEFRONT_BYTES}
"""Bytes by which a request to a memory can be shifted without changing its cost; 1 for other memories."""


def active_lanes(addresses: Sequence[int | None], width: int) -> list[tuple[int, int]]:
    """(lane, byte address) of each active lane.

    A lane is inactive if its address is None or missing at the end; ``width`` is the bytes of a lane's element.

    Raises:
        ValueError: for a width in bytes that no instruction has, more than 32 lanes, or an address that is negative
            or no multiple of the width (PTX demands natural alignment).
    """
    if width not in WIDTHS:
        raise ValueError(f"an element has one of {WIDTHS} bytes, not {width}")
    if len(addresses) > WARP:
        raise ValueError(f"a warp has {WARP} lanes, not {len(addresses)}")
    active = [(lane, address) for lane, address in enumerate(addresses) if address is not None]
    for lane, address in active:
        if address < 0 or address % width:
            raise ValueError(f"lane {lane}: address {address} is negative or no multiple of {width} bytes")
    return active
