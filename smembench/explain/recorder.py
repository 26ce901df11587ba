"""Memory of a traced kernel: arrays with addresses but no content, and the recorder of every access to them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import and_
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.explain.lockstep import Group
from smembench.explain.mistakes import WARP_SYNCS, Made, Mistake, divergent, in_shared_memory, thread
from smembench.explain.unknown import Unfollowed
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP

NOWHERE = -1
"""In place of the address of an inactive lane."""


@dataclass(frozen=True, slots=True)
class AccessSite:
    """A memory access in the source.

    Attributes:
        line: in the kernel's file.
        space: ``shared``, ``constant`` or ``global``.
        kind: ``load``, ``store`` or ``atomic``.
        array: the problem's name for it, or shared0, shared1, constant0 …
        width: bytes per lane.
    """

    line: int
    space: str
    kind: str
    array: str
    width: int


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A shared array of the kernel; ``base`` is the byte at which it begins."""

    name: str
    shape: tuple[int, ...]
    itemsize: int
    base: int

    @property
    def bytes(self) -> int:
        """Its size in bytes."""
        return prod(self.shape) * self.itemsize


@dataclass(frozen=True, slots=True)
class Request:
    """One access by one warp: a byte address per lane, None for inactive lanes.

    ``weight`` is the number of requests, of the grid or of a launch, that it stands for.
    """

    site: AccessSite
    warp: int
    addresses: tuple[int | None, ...]
    weight: int = 1


Found = dict[tuple[AccessSite, int], NDArray[np.int64]]
"""The addresses of a block's threads, by warp and lane, of their n-th access at a site."""


def request(site: AccessSite, warp: int, addresses: NDArray[np.int64], weight: int) -> Request:
    """The request of a warp's lanes."""
    return Request(site, warp, tuple(None if at == NOWHERE else at for at in addresses.tolist()), weight)


class Recorder:
    """Records the addresses of the group of threads that runs, and what they do that no kernel may.

    Attributes:
        filename: the kernel's file.
        shared: the shared arrays of a block.
        mistakes, unfollowed: of all blocks.
    """

    def __init__(self, dynamic_bytes: int, filename: str, threads: int) -> None:
        self.filename = filename
        self.shared: list[SharedArray] = []
        self.mistakes: set[Mistake] = set()
        self.unfollowed: set[Unfollowed] = set()
        self._dynamic_bytes = dynamic_bytes
        self._dynamic_base: int | None = None
        self._warps = -(-threads // WARP)
        self._found: Found = {}
        self._orders: Found = {}
        self._paths: list[tuple[int, ...]] = [()] * threads
        self._barriers: list[int] = []
        self._order = 0
        self.group = Group(np.arange(threads))
        self._counts: dict[AccessSite, int] = {}
        self._arrays = 0
        self._constants = 0

    def enter(self, group: Group) -> None:
        """Begin with a group of threads."""
        self.group = group
        self._counts = {}
        self._arrays = self._constants = 0
        self._barriers, self._order = [], 0

    def leave(self) -> None:
        """The threads that are still going have run to the end."""
        for number in self._going:
            self._paths[number] = tuple(self._barriers)

    @property
    def _going(self) -> NDArray[np.intp]:
        return self.group.threads[self.group.going]

    def barrier(self) -> None:
        """In place of ``cuda.syncthreads``."""
        self._barriers.append(self.line())
        self._order = WARP_SYNCS * len(self._barriers)

    def sync_warp(self, mask: int = 0) -> None:
        """In place of ``cuda.syncwarp``."""
        self._order += 1

    def line(self) -> int:
        """The line of the nearest frame in the kernel's file; if a helper made the access, the line of its call."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.filename:
            frame = frame.f_back
        return 0 if frame is None else frame.f_lineno

    def outside(self, line: int, array: str, shape: tuple[int, ...], inside: Any, index: Any) -> None:
        """Note the first thread for which an access is not ``inside`` the array."""
        here = np.broadcast_to(self.group.own(inside), self._going.shape)
        if not here.all():
            first = int(np.argmin(here))
            at = ", ".join(str(np.broadcast_to(self.group.own(i), here.shape)[first]) for i in index)
            sides = " × ".join(map(str, shape))
            text = f"{thread(self._going[first])} accesses {array}[{at}], which has {sides} elements"
            self.mistakes.add(Mistake(line, "outside", text))

    def note(self, site: AccessSite, address: Any) -> None:
        """Record an access: a thread's n-th access at a site belongs to its warp's n-th request there."""
        count = self._counts[site] = self._counts.get(site, -1) + 1
        found = self._found.get((site, count))
        if found is None:
            found = self._found[site, count] = np.full((self._warps, WARP), NOWHERE)
            if site.space == "shared":
                self._orders[site, count] = np.zeros(self._warps * WARP, np.int64)
        found.reshape(-1)[self._going] = self.group.own(address)
        if site.space == "shared":
            self._orders[site, count][self._going] = self._order

    def requests(self, weight: int) -> list[Request]:
        """The current block's requests, warp by warp; afterwards the next block begins."""
        found, self._found = self._found, {}
        orders, self._orders = self._orders, {}
        made = [
            Made(site.line, site.kind, site.array, site.width, found[site, count].reshape(-1), order)
            for (site, count), order in orders.items()
        ]
        self.mistakes.update(in_shared_memory(made), divergent(self._paths))
        return self._listed(found, weight)

    def _listed(self, found: Found, weight: int) -> list[Request]:
        return [
            request(site, warp, addresses[warp], weight)
            for warp in range(self._warps)
            for (site, _), addresses in found.items()
            if (addresses[warp] != NOWHERE).any()
        ]

    def shared_array(self, shape: Any, dtype: Any, alignment: int | None = None) -> AddressArray:
        """In place of ``cuda.shared.array``: every thread's n-th call returns the same array."""
        index, self._arrays = self._arrays, self._arrays + 1
        if index == len(self.shared):
            size = np.dtype(str(dtype)).itemsize
            sides = shape if isinstance(shape, tuple) else (shape,)
            end = self.shared[-1].base + self.shared[-1].bytes if self.shared else 0
            step = max(alignment or 0, size)
            base = -(-end // step) * step
            if sides == (0,):  # dynamic: the launch decides the length, and all of them are the same memory
                sides = (self._dynamic_bytes // size,)
                base = self._dynamic_base = base if self._dynamic_base is None else self._dynamic_base
            self.shared.append(SharedArray(f"shared{index}", sides, size, base))
        array = self.shared[index]
        return self.array("shared", array.name, array.shape, array.base, str(dtype))

    def constant_array(self, like: Any) -> AddressArray:
        """In place of ``cuda.const.array_like``."""
        name, self._constants = f"constant{self._constants}", self._constants + 1
        return self.array("constant", name, like.shape, 0, str(like.dtype))

    def array(self, space: str, name: str, shape: tuple[int, ...], base: int, dtype: str) -> AddressArray:
        """An array whose accesses are recorded."""
        return AddressArray(self, space, name, shape, base, dtype)


class AddressArray:
    """An array with addresses but no content."""

    def __init__(
        self, recorder: Recorder, space: str, name: str, shape: tuple[int, ...], base: int, dtype: str
    ) -> None:
        self._recorder = recorder
        self._space, self._name, self._base = space, name, base
        self._shape = shape
        self._zero = np.zeros((), dtype)[()]
        self.itemsize = int(self._zero.itemsize)
        self._strides = [self.itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))]

    def _note(self, index: Any, kind: str) -> int:
        """Record an access and return its number of elements; a slice is a single, wider access."""
        count = 1
        if isinstance(index, slice):
            index, count = index.start, int(index.stop - index.start)
        self._access(tuple(signed(i) for i in (index if isinstance(index, tuple) else (index,))), count, kind)
        return count

    def _access(self, indices: tuple[Any, ...], count: int, kind: str) -> None:
        """Record an access to ``count`` elements from ``indices`` on."""
        offset = sum(i * stride for i, stride in zip(indices, self._strides, strict=True))
        line = self._recorder.line()
        *_, last = ends = [i + 1 for i in indices]
        ends[-1] = last + (count - 1)
        inside = [(i >= 0) & (end <= side) for i, end, side in zip(indices, ends, self._shape, strict=True)]
        self._recorder.outside(line, self._name, self._shape, reduce(and_, inside), indices)
        site = AccessSite(line, self._space, kind, self._name, count * self.itemsize)
        self._recorder.note(site, self._base + offset)

    def __getitem__(self, index: Any) -> Any:
        count = self._note(index, "load")
        return (self._zero,) * count if isinstance(index, slice) else self._zero

    def __setitem__(self, index: Any, value: Any) -> None:
        self._note(index, "store")

    def update(self, index: Any, *values: Any) -> Any:
        """In place of the functions of ``cuda.atomic``, which return the old value.

        Raises:
            UsageError: for shared memory, where lanes that share a word take turns, unlike loads and stores.
        """
        if self._space == "shared":
            raise UsageError(f"{self._name}: atomics in shared memory are not traced")
        self._note(index, "atomic")
        return self._zero


def signed(index: Any) -> Any:
    """An index, or one per thread, in a type that no address overflows."""
    return index.astype(np.int64) if isinstance(index, np.ndarray) else int(index)
