"""Memory of a traced block: where arrays lie, and the contents that are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.explain.mistakes import Mistake
from smembench.explain.ptx.program import Instruction, PtxKernel
from smembench.explain.requests import Integers

SPACING = 2**40
"""Bytes between arrays: more than any has, and a multiple of every alignment."""
_WINDOWS = {"shared": 1 << 56, "local": 1 << 57}
"""Where shared and local memory lie among generic addresses."""

Mask = NDArray[np.bool_]


@dataclass(slots=True)
class GlobalArray:
    """An array in global or constant memory: its name, first byte, size in bytes, and content if that is known."""

    name: str
    begin: int
    bytes: int
    data: NDArray[np.uint8] | None
    space: str = "global"


class Memory:
    """Global arrays, and the shared and local memory of one block."""

    def __init__(self, kernel: PtxKernel, arrays: Sequence[GlobalArray], dynamic_bytes: int) -> None:
        self.kernel = kernel
        self.arrays = list(arrays)
        self._places: dict[str, int] = {}
        for variable in kernel.variables.values():
            if variable.space in ("global", "const"):
                begin = (len(self.arrays) + 1) * SPACING
                space = "const" if variable.space == "const" else "global"
                self.arrays.append(GlobalArray(variable.name, begin, variable.bytes, variable.data, space))
                self._places[variable.name] = begin
            else:
                self._places[variable.name] = variable.begin
        dynamic = [each.begin for each in kernel.variables.values() if each.space == "shared" and not each.bytes]
        self.shared_bytes = max([kernel.shared_bytes, *dynamic]) + dynamic_bytes
        self.has_data = any(array.data is not None for array in self.arrays)
        self._shared = self._local = np.zeros(0, np.uint8)
        self._known = self._known_local = np.zeros(0, np.bool_)

    def enter(self, threads: int) -> None:
        """Begin a block of so many threads."""
        self._shared, self._known = (
            np.zeros(self.shared_bytes + 16, np.uint8),
            np.zeros(self.shared_bytes + 16, np.bool_),
        )
        local = threads * (self.kernel.local_bytes + 16)
        self._local, self._known_local = np.zeros(local, np.uint8), np.zeros(local, np.bool_)

    def address_of(self, name: str) -> int:
        """Where a variable begins in its space."""
        return self._places[name]

    def window(self, space: str) -> int:
        """What is added to an address in a space to make it generic."""
        return _WINDOWS.get(space, 0)

    def array_at(self, address: int) -> GlobalArray | None:
        """The global array at an address, or that which it misses by less than its distance to the next."""
        number = address // SPACING - 1
        return self.arrays[number] if 0 <= number < len(self.arrays) else None

    def shared_name(self, address: int) -> str:
        """The variable in shared memory at an address, or the one before it."""
        inside = [each for each in self.kernel.variables.values() if each.space == "shared" and each.begin <= address]
        return max(inside, key=lambda each: each.begin).name if inside else "shared"

    def located(self, space: str, addresses: Integers, mask: Mask | None) -> tuple[str, Integers]:
        """The space of an access, and the addresses in it, for generic ones by where the first lies."""
        if space != "generic":
            return space, addresses
        active = addresses if mask is None else addresses[mask]
        first = int(active.flat[0])
        for name, begin in sorted(_WINDOWS.items(), key=lambda item: -item[1]):
            if first >= begin:
                return name, addresses - begin
        return "global", addresses

    def load(self, space: str, addresses: Integers, element: np.dtype[Any]) -> tuple[Any, Any]:
        """The elements at addresses, and where they are unknown; None if nowhere."""
        content, known, at = self._view(space, addresses)
        if content is None:
            return np.zeros((), element)[()], np.bool_(True)
        inside = (at >= 0) & (at + element.itemsize <= len(content))
        begins = np.where(inside, at, 0)
        places = begins[:, None] + np.arange(element.itemsize)
        value = np.ascontiguousarray(content[places]).view(element)[:, 0]
        unknown = ~inside if known is None else ~inside | ~known[places].all(1)
        return value, unknown if unknown.any() else None

    def store(
        self,
        given: Instruction,
        space: str,
        addresses: Integers,
        values: Sequence[Callable[[], Any]],
        who: tuple[Any, Any],
    ) -> None:
        """Store values, or combine them with what is there, thread by thread; ``who``: mask, and where unknown."""
        mask, unknown = who
        content, known, at = self._view(space, addresses)
        if content is None or not values:
            return
        operands = [np.broadcast_to(value(), addresses.shape) for value in values[: 2 if "cas" in given.parts else 1]]
        element = operands[0].dtype
        inside = (at >= 0) & (at + element.itemsize <= len(content))
        if mask is not None:
            inside &= mask
        places = at[inside][:, None] + np.arange(element.itemsize)
        chosen = [np.ascontiguousarray(operand[inside]) for operand in operands]
        if given.root == "st":
            content[places] = chosen[0].view(np.uint8).reshape(-1, element.itemsize)
            if known is not None:
                known[places] = True if unknown is None else ~unknown[inside][:, None]
            return
        for number, place in enumerate(places):
            before = content[place].view(element)[0]
            after = _combined(given.parts, before, *(operand[number] for operand in chosen))
            content[place] = np.array([after], element).view(np.uint8)

    def forget(self, space: str, addresses: Integers, width: int, mask: Mask | None) -> None:
        """What a copy brought is not known."""
        _, known, at = self._view(space, addresses)
        if known is None:
            return
        chosen = at if mask is None else at[mask]
        chosen = chosen[(chosen >= 0) & (chosen + width <= len(known))]
        known[chosen[:, None] + np.arange(width)] = False

    def _view(self, space: str, addresses: Integers) -> tuple[Any, Any, Integers]:
        """The content that an access reaches, where it is known, and the addresses in it."""
        if space == "shared":
            return self._shared, self._known, addresses
        if space == "local":
            each = len(self._local) // max(len(addresses), 1)
            return self._local, self._known_local, addresses + np.arange(len(addresses)) * each
        array = self.array_at(int(addresses.max(initial=0)))
        if array is None or array.data is None:
            return None, None, addresses
        return array.data, None, addresses - array.begin

    def outside(self, line: int, space: str, kind: str, addresses: Integers, width: int) -> Mistake | None:
        """The mistake of the first thread that accesses what belongs to no array; NOWHERE for inactive ones."""
        active = addresses >= 0
        if space == "shared":
            name, size, begin = "shared memory", self.shared_bytes, 0
        else:
            array = self.array_at(int(addresses.max(initial=0)))
            if array is None:
                name, size, begin = "global memory", 0, 0
            else:
                name, size, begin = array.name, array.bytes, array.begin
        beyond = active & ((addresses < begin) | (addresses + width > begin + size))
        if not beyond.any():
            return None
        thread = int(np.argmax(beyond))
        at = int(addresses[thread]) - begin
        verb = {"load": "loads", "store": "stores", "atomic": "updates"}[kind]
        text = f"thread {thread} {verb} {width} bytes at byte {at} of {name}, which has {size} bytes"
        return Mistake(line, "outside", text)


def _combined(parts: Sequence[str], before: Any, value: Any, other: Any = None) -> Any:
    """What an atomic operation leaves."""
    if "add" in parts:
        return before + value
    if "exch" in parts:
        return value
    if "cas" in parts:
        return other if before == value else before
    if "inc" in parts:
        return before.dtype.type(0) if before >= value else before + before.dtype.type(1)
    if "dec" in parts:
        return value if before == 0 or before > value else before - before.dtype.type(1)
    for name, compute in (("min", min), ("max", max)):
        if name in parts:
            return compute(before, value)
    return {"and": before & value, "or": before | value, "xor": before ^ value}[
        next(p for p in parts if p in ("and", "or", "xor"))
    ]
