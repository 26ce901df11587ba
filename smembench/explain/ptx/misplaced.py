"""Mistakes of accesses: outside of every array, and at addresses that their width does not allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np

from smembench.explain.mistakes import Mistake
from smembench.explain.ptx.content import element
from smembench.explain.ptx.memory import Memory, number_of
from smembench.explain.requests import NOWHERE, AccessSite, Integers
from smembench.explain.tiles import TileAccess
from smembench.model.groups import grouped

_HALF = 2**31
_VERBS = {"load": "loads", "store": "stores", "atomic": "updates"}


def outside(memory: Memory, line: int, space: str, kind: str, addresses: Integers, width: int) -> Mistake | None:
    """The mistake of the first thread that accesses what belongs to no array; NOWHERE for inactive ones."""
    active = addresses != NOWHERE
    numbers = number_of(addresses, space)
    for number in np.unique(numbers[active]):  # threads of one access may reach different arrays
        who = active & (numbers == number)
        name, begin, size = memory.extent(space, int(number))
        beyond = who & ((addresses < begin) | (addresses + width > begin + size))
        if beyond.any():
            break
    else:
        return None
    thread = int(np.argmax(beyond))
    at = int(addresses[thread]) - begin
    if space == "shared" and at >= _HALF:  # its addresses have 32 bits
        at -= 2 * _HALF
    known = space == "global" and 0 <= number < len(memory.arrays)
    shape = memory.arrays[int(number)].shape if known else ()
    what = f"{width} bytes at byte {at} of {name}, which has {size} bytes"
    if shape and width * prod(shape) == size:
        what = f"{name}[{element(shape, at // width)}], and {name} has {'x'.join(map(str, shape))} elements"
    if space == "shared" and memory.lacks_dynamic:
        what += "; give its dynamic part by --shared-bytes"
    return Mistake(line, "outside", f"thread {thread} {_VERBS[kind]} {what}")


def misaligned(memory: Memory, site: AccessSite, addresses: Integers) -> Mistake:
    """The mistake of the first thread that makes an access; its address is no multiple of the access's bytes."""
    thread = int(np.argmax(addresses != NOWHERE))
    address = int(addresses[thread])
    _, begin, _ = memory.extent(site.space, int(number_of(address, site.space)))
    where = "its allocation" if site.space in ("global", "constant") else "shared memory"
    text = (
        f"thread {thread} {_VERBS[site.kind]} {site.width} bytes of {site.array} at byte {address - begin} of "
        f"{where}, which is misaligned: the address must be a multiple of {site.width}"
    )
    return Mistake(site.line, "misaligned", text)


def boxes_outside(tiles: Mapping[TileAccess, int]) -> Iterator[Mistake]:
    """Copies most of whose boxes lie outside of their tensor; a pipeline may copy some beyond its end."""
    moved = grouped((access for access in tiles if access.kind == "copy"), lambda access: (access.line, access.matrix))
    for (line, matrix), accesses in moved.items():
        beyond = sum(tiles[access] for access in accesses if not access.global_bytes)
        count = sum(tiles[access] for access in accesses)
        if 2 * beyond > count:
            text = f"{beyond} of {count} boxes lie outside of {matrix}; their elements are zeros"
            yield Mistake(line, "outside", text)
