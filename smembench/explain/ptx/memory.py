"""Memory of a traced block: where arrays lie, and the contents that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.explain.ptx.content import Content, GlobalArray, combined
from smembench.explain.ptx.needed import MEMORY
from smembench.explain.ptx.operations import OPAQUE
from smembench.explain.ptx.origins import ANYWHERE, origins
from smembench.explain.ptx.program import Instruction, PtxKernel, Variable
from smembench.explain.ptx.windows import GENERIC, WINDOW, Windows
from smembench.explain.requests import NOWHERE, Integers
from smembench.launches.ptx_entry import TYPES

SPACING = 2**40
"""Bytes between arrays: more than any has, and a multiple of every alignment."""
_WINDOWS = {"shared": GENERIC, "local": 1 << 57, "param": 1 << 58}
"""Offsets of shared and local memory and parameters among generic addresses."""
_PARAMETER_ALIGNMENT = 64
WORKSPACE_BYTES = 64
"""Size of the workspace in which the blocks of a cooperative launch wait for each other."""

Mask = NDArray[np.bool_]


class Memory:
    """Global arrays, and the shared and local memory of one block, or of the blocks of a cluster.

    ``parameters`` are the bytes of a kernel's parameters by name. The space of shared memory is ``distributed`` for
    threads that reach that of another block.
    """

    def __init__(
        self,
        kernel: PtxKernel,
        arrays: Sequence[GlobalArray],
        dynamic_bytes: int,
        parameters: Mapping[str, bytes] = MappingProxyType({}),
    ) -> None:
        self.kernel = kernel
        self.arrays = list(arrays)
        self._places: dict[str, int] = {}
        for variable in kernel.variables.values():
            if variable.space in ("global", "const"):
                begin = (len(self.arrays) + 1) * SPACING
                space = "const" if variable.space == "const" else "global"
                self.arrays.append(GlobalArray(variable.name, begin, variable.bytes, _known(kernel, variable), space))
                self._places[variable.name] = begin
            else:
                self._places[variable.name] = variable.begin
        self.workspace = (len(self.arrays) + 1) * SPACING
        self.arrays.append(GlobalArray("grid workspace", self.workspace, WORKSPACE_BYTES, None))
        content = bytearray()
        for name, value in parameters.items():
            content += bytes(-len(content) % _PARAMETER_ALIGNMENT)
            self._places[name] = len(content)
            content += value
        self._parameters = Content(np.frombuffer(bytes(content), np.uint8))
        self._named = {self._places[name]: name for name in parameters}
        self.pointers = {name for name, value in parameters.items() if _points(value)}
        self.shared_bytes = kernel.dynamic_begin + dynamic_bytes
        self.lacks_dynamic = not dynamic_bytes and any(
            variable.space == "shared" and not variable.bytes for variable in kernel.variables.values()
        )
        self.has_data = any(array.data is not None for array in self.arrays)
        self.has_results = any(array.result for array in self.arrays)
        self._global = {
            number: Content(array.data) for number, array in enumerate(self.arrays) if array.data is not None
        }
        self._shared = self._local = Content(np.zeros(0, np.uint8))
        self.windows = Windows(self.shared_bytes + 16, 1, 1)

    def enter(self, threads: int, blocks: int = 1) -> None:
        """Begin a block, or several blocks with ``threads`` threads in all."""
        self.windows = Windows(self.shared_bytes + 16, threads, blocks)
        self._shared, self._local = (
            Content(np.zeros(size, np.uint8), np.zeros(size, np.bool_))
            for size in (blocks * self.windows.pitch, threads * (self.kernel.local_bytes + 16))
        )

    def address_of(self, name: str) -> int:
        """The first byte of a variable in its space."""
        return self._places[name]

    def window(self, space: str) -> int:
        """The offset of a space among generic addresses."""
        return _WINDOWS.get(space, 0)

    def array_at(self, address: int) -> GlobalArray | None:
        """The global array at an address, or that which it misses by less than half of the distance to the next."""
        number = number_of(address)
        return self.arrays[number] if 0 <= number < len(self.arrays) else None

    def name_at(self, address: int) -> str:
        """The parameter, or the array in global memory, at an address, which may be generic; "" for neither."""
        if name := self._named.get(address % _WINDOWS["param"]):
            return name
        array = self.array_at(address)
        return array.name if array is not None else ""

    def shared_name(self, address: int, given: Instruction) -> str:
        """The variable in shared memory at an address, or the one before it; ``given`` is what accesses it."""
        address = address if self.windows.blocks == 1 else address % WINDOW
        inside = [var for var in self.kernel.variables.values() if var.space == "shared" and var.begin <= address]
        if not inside:
            return "shared"
        last = max(inside, key=lambda var: var.begin)
        return last.name if last.bytes else self._dynamic.get(id(given), last.name)

    @cached_property
    def _dynamic(self) -> Mapping[int, str]:
        """The dynamic variable, of several at the same bytes, that an instruction's address is computed from."""
        names = {var.name for var in self.kernel.variables.values() if var.space == "shared" and not var.bytes}
        if len(names) < 2:
            return {}
        of_each = ((key, names & reached) for key, reached in origins(self.kernel, names, MEMORY).items())
        return {key: min(own) for key, own in of_each if len(own) == 1}

    def apart(self, space: str, addresses: Integers, mask: Mask | None) -> list[Mask | None]:
        """The threads of an access by the space that they reach, which generic addresses may differ in."""
        if mask is not None and not mask.any():
            return []
        apart = self.windows.blocks > 1
        if space != "generic" and not (apart and space == "shared"):
            return [mask]
        begins = sorted(_WINDOWS.values()) if space == "generic" else [0]
        spaces = np.searchsorted(begins, addresses, side="right")
        if apart:  # 1 is shared memory
            spaces = np.where((spaces == 1) & self.windows.remote(addresses), NOWHERE, spaces)
        reached = np.unique(spaces if mask is None else spaces[mask])
        if len(reached) == 1:
            return [mask]
        return [spaces == number if mask is None else mask & (spaces == number) for number in reached]

    def located(self, space: str, addresses: Integers, mask: Mask | None) -> tuple[str, Integers]:
        """The space of an access, and the addresses in it, for generic ones by where the first lies."""
        if space == "generic":
            active = addresses if mask is None else addresses[mask]
            first = int(active.flat[0])
            begins = sorted(_WINDOWS.items(), key=lambda item: -item[1])
            space, begin = next((window for window in begins if first >= window[1]), ("global", 0))
            addresses = addresses - begin if begin else addresses
        if space != "shared" or self.windows.blocks == 1:
            return space, addresses
        thread = 0 if mask is None else int(np.argmax(mask))
        if self.windows.remote(addresses)[thread]:
            return "distributed", addresses
        return space, addresses % WINDOW

    def places(self, addresses: Integers, width: int) -> Integers:
        """Addresses of shared memory by thread, as places in the cluster's; NOWHERE for what is outside."""
        offsets = addresses if self.windows.blocks == 1 else addresses % WINDOW
        inside = np.where(offsets + width <= self.shared_bytes, addresses, NOWHERE)
        return self.windows.in_cluster(inside)

    def load(
        self, space: str, addresses: Integers, element: np.dtype[Any], mask: Mask | None = None
    ) -> tuple[Any, Any]:
        """The elements at addresses, and where they are unknown; None if nowhere."""
        width = element.itemsize
        if space == "shared" and self.windows.blocks == 1 and self._shared.is_unknown(addresses, width):
            return np.zeros((), element)[()], np.True_
        views = self._views(space, addresses, width, mask)
        if not views:
            return np.zeros((), element)[()], np.True_
        value, unknown = np.zeros(addresses.shape, element), np.ones(addresses.shape, np.bool_)
        for content, inside, places in views:
            value[inside] = np.ascontiguousarray(content.data[places]).view(element)[:, 0]
            unknown[inside] = False if content.known is None else ~content.known[places].all(1)
        if mask is not None:
            unknown &= mask
        return value, unknown if unknown.any() else None

    def without_data(self, space: str, addresses: Integers, mask: Mask | None) -> set[str]:
        """The names of the arrays in global memory at addresses whose content nobody gave."""
        if space in ("shared", "distributed", "param", "local"):
            return set()
        known = (number for number in _numbers(addresses, mask) if 0 <= number < len(self.arrays))
        return {self.arrays[number].name for number in known if number not in self._global}

    def store(
        self,
        space: str,
        addresses: Integers,
        value: Any,
        who: tuple[Any, Any],
    ) -> None:
        """Store a value by thread; ``who``: mask, and where the value is unknown, which leaves all bits set: a NaN."""
        mask, unknown = who
        value = np.broadcast_to(value, addresses.shape)
        for content, inside, places in self._views(space, addresses, value.dtype.itemsize, mask):
            data = np.ascontiguousarray(value[inside]).view(np.uint8).reshape(places.shape)
            content.data[places] = data if unknown is None else np.where(unknown[inside][:, None], 255, data)
            content.mark(places, True if unknown is None else ~unknown[inside])

    def update(
        self,
        parts: Sequence[str],
        space: str,
        addresses: Integers,
        values: Sequence[Any],
        who: tuple[Any, Any],
    ) -> tuple[Any, Any]:
        """Combine values with what is there, thread by thread; the values before, and where they are unknown.

        An atomic operation whose arithmetic is not followed, or with an unknown value, leaves what is unknown.
        """
        mask, unknown = who
        operands = [np.broadcast_to(value, addresses.shape) for value in values[: 2 if "cas" in parts else 1]]
        element = operands[0].dtype
        previous, missing = self.load(space, addresses, element, mask)
        previous, followed = np.broadcast_to(previous, addresses.shape).copy(), not OPAQUE.intersection(parts)
        for content, inside, places in self._views(space, addresses, element.itemsize, mask):
            if not followed or (unknown is not None and unknown[inside].any()):
                content.mark(places, False)
                missing = inside if missing is None else missing | inside
                continue
            for thread, place in zip(np.flatnonzero(inside), places, strict=True):
                previous[thread] = before = content.data[place].view(element)[0]
                after = combined(parts, before, *(operand[thread] for operand in operands))
                content.data[place] = np.array([after], element).view(np.uint8)
        return previous, missing

    def forget(self, space: str, addresses: Integers, width: int, mask: Mask | None) -> None:
        """Mark the bytes that a copy brought as unknown."""
        for content, _, places in self._views(space, addresses, width, mask):
            content.mark(places, False)

    def _views(
        self, space: str, addresses: Integers, width: int, mask: Mask | None
    ) -> list[tuple[Content, Mask, Integers]]:
        """The known contents that an access reaches, with the threads inside of each, and their bytes."""
        active = np.ones(addresses.shape, np.bool_) if mask is None else mask
        parts: list[tuple[Content, Mask, Integers]]
        if space in ("shared", "distributed"):
            parts = [(self._shared, active, self.windows.in_cluster(addresses))]
        elif space == "param":
            parts = [(self._parameters, active, addresses)]
        elif space == "local":
            per_thread = len(self._local.data) // max(len(addresses), 1)
            parts = [(self._local, active, addresses + np.arange(len(addresses)) * per_thread)]
        else:
            parts = [
                (self._global[number], active, addresses - (number + 1) * SPACING)
                for number in _numbers(addresses, mask)
                if number in self._global
            ]
        views: list[tuple[Content, Mask, Integers]] = []
        for content, who, at in parts:
            inside = who & (at >= 0) & (at + width <= len(content.data))
            views.append((content, inside, at[inside][:, None] + np.arange(width)))
        return views

    @cached_property
    def _from_structures(self) -> Mapping[int, str]:
        """The structure that an instruction's address may come from, by the instruction's ``id``."""
        names = [item.name for item in self.kernel.parameters if item.bytes != np.dtype(TYPES[item.type]).itemsize]
        if not names:
            return {}
        places = origins(self.kernel, names, MEMORY)
        of_each = ((key, [name for name in names if name in reached]) for key, reached in places.items())
        return {key: (own or names)[0] for key, own in of_each if own or ANYWHERE in places[key]}

    def by_unknown_pointer(self, given: Instruction, addresses: Integers) -> tuple[str, Mask]:
        """A structure with a pointer, whose value no array has, and the threads whose access follows it."""
        name = self._from_structures.get(id(given), "")
        if not name:
            return name, np.zeros(addresses.shape, np.bool_)
        numbers = number_of(addresses)
        return name, (addresses != NOWHERE) & ((numbers < 0) | (numbers >= len(self.arrays)))

    def extent(self, space: str, number: int) -> tuple[str, int, int]:
        """Name, first byte and size of shared memory, or of the array with a number."""
        if space == "shared":
            return "shared memory", 0, self.shared_bytes
        if space == "distributed":
            size = self.shared_bytes if number < self.windows.blocks else 0
            return f"shared memory of block {number} of the cluster", (number + 1) * WINDOW, size
        if 0 <= number < len(self.arrays):
            array = self.arrays[number]
            return array.name, array.begin, array.bytes
        return "global memory", 0, 0

    def holds(self, space: str, begin: int, end: int) -> bool:
        """True if one array, or shared memory, has all bytes from ``begin`` to ``end``."""
        _, first, size = self.extent(space, int(number_of(begin, space)))
        return bool(first <= begin and end <= first + size)


def _points(parameter: bytes) -> bool:
    """True if a parameter holds the address of an array in global memory."""
    words = np.frombuffer(parameter[: len(parameter) // 8 * 8], np.uint64)
    return bool((words >= SPACING // 2).any())


def _known(kernel: PtxKernel, variable: Variable) -> NDArray[np.uint8] | None:
    """The content of a module's variable; None of one without an initialiser, if no atomic counts in it.

    What other blocks store there a trace does not know.
    """
    counts = any(op.root in ("atom", "red") for op in kernel.code)
    return variable.data if variable.data is None or counts or variable.data.any() else None


def number_of(address: Any, space: str = "global") -> Any:
    """The number of the array that is nearest to an address; those before an array are misses of it.

    Of distributed shared memory it is the rank of the block, and 0 of a block's own.
    """
    if space in ("shared", "distributed"):
        return address // WINDOW - 1 if space == "distributed" else address * 0
    return (address + SPACING // 2) // SPACING - 1


def _numbers(addresses: Integers, mask: Mask | None) -> list[int]:
    """The numbers of the arrays that threads reach, in order."""
    reached = addresses if mask is None else addresses[mask]
    first, last = int(number_of(reached.min())), int(number_of(reached.max()))
    return [first] if first == last else np.unique(number_of(reached)).tolist()
