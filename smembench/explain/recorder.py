"""Memory of a traced kernel: arrays with addresses but no content, and the recorder of every access to them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.explain.branches import decided, partners
from smembench.explain.lockstep import Group
from smembench.explain.mistakes import WARP_SYNCS, Made, Mistake, Path, Unfollowed, divergent, in_shared_memory, thread
from smembench.explain.moved import Moved, keep_lanes_that_store
from smembench.explain.requests import NOWHERE, UNSERVED, Accesses, AccessSite, Integers
from smembench.explain.sites import Sites
from smembench.explain.tiles import TileRecorder
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP


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


class _Access(NamedTuple):
    """An access by a group: its indices, each one number or one per thread, and the order of its threads there.

    ``passes`` are the variables of the loops around it: by them threads that skipped some accesses match the others.
    """

    array: AddressArray
    indices: tuple[Any, ...]
    order: int
    passes: tuple[int, ...] = ()


_Row = tuple[int, tuple[int, ...], int]
"""An access at a site: the order of its threads, the passes of the loops around it, and a number among those alike."""


class Recorder:
    """Records the addresses of the group of threads that runs, and what they do that no kernel may.

    Attributes:
        filename: the kernel's file.
        sites: finds where it makes an access.
        shared: the shared arrays of a block.
        mistakes, unfollowed, tiles: of all blocks.
        moved: loads that the machine code makes for the lanes of stores alone.
    """

    def __init__(self, dynamic_bytes: int, filename: str, threads: int, moved: Moved | None = None) -> None:
        self.filename = filename
        self.moved = moved or {}
        self.shared: list[SharedArray] = []
        self.mistakes: set[Mistake] = set()
        self.unfollowed: set[Unfollowed] = set()
        self._dynamic_bytes = dynamic_bytes
        self._dynamic_base: int | None = None
        self._threads = -(-threads // WARP) * WARP
        self._made: dict[AccessSite, list[_Access]] = {}
        self._conditions: dict[tuple[str, int], int] = {}
        self._addresses: dict[AccessSite, Integers] = {}
        self._orders: dict[AccessSite, Integers] = {}
        self._rows: dict[AccessSite, dict[_Row, int]] = {}
        self._ranks: dict[AccessSite, dict[_Row, int]] = {}
        self._nothing = AddressArray(self, "barrier", "", (1,), 0, "int8")
        self._paths = [Path()] * threads
        self._barriers: list[int] = []
        self._order = 0
        self.group = Group(np.arange(threads))
        self.sites = Sites(filename)
        self.tiles = TileRecorder(self.sites.line)
        self._arrays = 0
        self._constants = 0

    def enter(self, group: Group) -> None:
        """Begin with a group of threads."""
        self.group = group
        group.decides = self._decides
        self._made = {}
        self._arrays = self._constants = 0
        self._barriers, self._order = [], 0
        self.tiles.enter(group)

    def leave(self) -> None:
        """The threads that are still going have run to the end: keep what they did."""
        passed = len(self._barriers)
        accessed = ((site, made[-1].order) for site, made in self._made.items() if site.space not in UNSERVED)
        behind = (site.line for site, order in accessed if order // WARP_SYNCS == passed)
        path = Path(tuple(self._barriers), max(behind, default=0))
        for number in self.group.threads[self.group.going]:
            self._paths[number] = path
        for site, made in self._made.items():
            self._keep(site, made)
        self.tiles.leave()

    def barrier(self) -> None:
        """In place of ``cuda.syncthreads``."""
        self._barriers.append(self.note(self._nothing, "barrier", 1, (0,)).line)
        self._order = WARP_SYNCS * len(self._barriers)

    def fence(self) -> None:
        """In place of ``cuda.threadfence``."""
        self.note(AddressArray(self, "fence", "", (1,), 0, "int8"), "fence", 1, (0,))

    def sync_warp(self, mask: int = 0) -> None:
        """In place of ``cuda.syncwarp``."""
        self._order += 1

    def note(self, array: AddressArray, kind: str, width: int, indices: tuple[Any, ...]) -> AccessSite:
        """An access by the threads that are still going; its site."""
        site, filename, passes = self.sites.of_access(array.space, kind, array.name, width)
        self._made.setdefault(site, []).append(_Access(array, indices, self._order, passes))
        if (array.space, kind) == ("shared", "store") and (other := partners(filename).get(site.place)):
            self._pass((site.place, other))
        return site

    def _pass(self, lines: Sequence[int]) -> None:
        """The threads that are still going pass lines that some of them run."""
        for line in lines:
            passed = AccessSite(line, "branch", "branch", "", 1, "", line)
            self._made.setdefault(passed, []).append(_Access(self._nothing, (0,), self._order))

    def _decides(self) -> None:
        """Before a condition is true for some threads and false for others."""
        frame = sys._getframe(2)
        condition = frame.f_code.co_filename, frame.f_lineno
        # Of a condition with ``and`` all threads come to the first part, which is the one seen first.
        if self._conditions.setdefault(condition, frame.f_lasti) == frame.f_lasti:
            self._pass(decided(condition[0]).get(frame.f_lineno, ()))

    def _keep(self, site: AccessSite, made: Sequence[_Access]) -> None:
        """The addresses of a group's accesses at a site, all at once: one by one they take most of a trace's time."""
        going, array = self.group.going, made[0].array
        indices = []
        for of_axis in zip(*(access.indices for access in made), strict=True):
            whole = np.empty((len(made), len(self.group.threads)), np.int64)
            for row, index in enumerate(of_axis):
                whole[row] = index
            indices.append(whole[:, going])
        addresses, inside = array.located(indices, site.width)
        threads = self.group.threads[going]
        for wrong in np.flatnonzero(~inside.all(axis=1)):
            first = np.argmin(inside[wrong])
            at = ", ".join(str(index[wrong, first]) for index in indices)
            text = f"{thread(threads[first])} accesses {array.name}[{at}], which has {array.sides} elements"
            self.mistakes.add(Mistake(site.line, "outside", text))
        orders = np.array([access.order for access in made])
        rows = np.array(self._numbered(site, made))[:, None]
        self._grown(self._addresses, site)[rows, threads] = addresses
        if site.space in ("shared", "mbarrier"):
            self._grown(self._orders, site)[rows, threads] = orders[:, None]

    def _numbered(self, site: AccessSite, made: Sequence[_Access]) -> list[int]:
        """The rows of a site's accesses: one for all threads' n-th of a pass between the same two synchronisations."""
        known, ranks, found = self._rows.setdefault(site, {}), self._ranks.setdefault(site, {}), []
        times: Counter[tuple[int, tuple[int, ...]]] = Counter()
        for rank, access in enumerate(made):
            place = access.order, access.passes
            row = (*place, times[place])
            times[place] += 1
            found.append(known.setdefault(row, len(known)))
            ranks[row] = max(rank, ranks.get(row, 0))
        return found

    def _grown(self, recorded: dict[AccessSite, Integers], site: AccessSite) -> Integers:
        """A site's rows, one per access with a column per thread, with new ones at the end."""
        before = recorded.get(site, np.empty((0, self._threads), np.int64))
        if (more := len(self._rows[site]) - len(before)) > 0:
            recorded[site] = np.concatenate((before, np.full((more, self._threads), NOWHERE)))
        return recorded[site]

    def _in_order(self, site: AccessSite) -> Integers:
        """The addresses of a site's accesses, in the order in which threads make them that skip the fewest."""
        known, ranks = self._rows[site], self._ranks[site]
        return self._addresses[site][[known[row] for row in sorted(known, key=lambda row: (row[0], ranks[row], row))]]

    def accesses(self, weight: int) -> list[Accesses]:
        """Those of the current block; afterwards the next block begins."""
        self.tiles.leave_block(weight)
        made = [Made(site, self._addresses[site], order) for site, order in self._orders.items()]
        self.mistakes.update(in_shared_memory(made), divergent(self._paths))
        keep_lanes_that_store(self._addresses, self._rows, self.moved)
        recorded = {site: self._in_order(site) for site in self._addresses}
        self._addresses, self._orders, self._rows, self._ranks = {}, {}, {}, {}
        return [Accesses(site, rows.reshape(len(rows), -1, WARP), weight) for site, rows in recorded.items()]

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
    """An array with addresses but no content; its ``space`` is as in ``AccessSite``."""

    def __init__(
        self, recorder: Recorder, space: str, name: str, shape: tuple[int, ...], base: int, dtype: str
    ) -> None:
        self._recorder = recorder
        self.space, self.name, self._base = space, name, base
        self._shape = shape
        self._zero = np.zeros((), dtype)[()]
        self.itemsize = int(self._zero.itemsize)
        self._strides = [self.itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))]

    @property
    def sides(self) -> str:
        """Its shape, for a sentence."""
        return " × ".join(map(str, self._shape))

    def located(self, indices: Sequence[Integers], width: int) -> tuple[Integers, NDArray[np.bool_]]:
        """Byte addresses of elements, and whether accesses to ``width`` bytes from there on lie inside the array."""
        addresses, inside = np.full(indices[0].shape, self._base), np.full(indices[0].shape, True)
        last = len(indices) - 1
        for axis, (index, side, stride) in enumerate(zip(indices, self._shape, self._strides, strict=True)):
            addresses += index * stride
            end = index + (width // self.itemsize if axis == last else 1)
            inside &= (index >= 0) & (end <= side)
        return addresses, inside

    def _note(self, index: Any, kind: str) -> int:
        """Record an access and return its number of elements; a slice is a single, wider access."""
        count = 1
        if isinstance(index, slice):
            index, count = index.start, int(index.stop - index.start)
        self._access(index if isinstance(index, tuple) else (index,), count, kind)
        return count

    def _access(self, indices: tuple[Any, ...], count: int, kind: str) -> None:
        """Record an access to ``count`` elements from ``indices`` on."""
        self._recorder.note(self, kind, count * self.itemsize, indices)

    def __getitem__(self, index: Any) -> Any:
        count = self._note(index, "load")
        return (self._zero,) * count if isinstance(index, slice) else self._zero

    def __setitem__(self, index: Any, value: Any) -> None:
        self._note(index, "store")

    def synchronize(self, index: Any, kind: str) -> None:
        """Record that threads set up (``store``) or use (``atomic``) a barrier, an element of shared memory."""
        barriers = self._recorder.array("mbarrier", self.name, self._shape, self._base, str(self._zero.dtype))
        barriers._note(index, kind)

    def update(self, index: Any, *values: Any) -> Any:
        """In place of the functions of ``cuda.atomic``, which return the old value.

        Raises:
            UsageError: for shared memory, where lanes that share a word take turns, unlike loads and stores.
        """
        if self.space == "shared":
            raise UsageError(f"{self.name}: atomics in shared memory are not traced")
        self._note(index, "atomic")
        return self._zero
