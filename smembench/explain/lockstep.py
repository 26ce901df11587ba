"""Runs a kernel's Python once for all threads of a block that take the same path, instead of once per thread.

Numbers that differ between threads are arrays with one element per thread. If such a number decides a branch, the run
follows most of its threads. The others leave it and start again later, in a group of their own. They repeat what they
did before the branch, so recording an access twice must be harmless.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]

_FEW = 4
"""Fewest threads on a path for which arrays are faster than separate numbers."""


class Group:
    """Threads that run a kernel together.

    Attributes:
        threads: indices in the block.
        going: positions in ``threads`` of those that have not left.
        left: threads that left, in arrays of those that may run together.
        decides: called before numbers that may differ decide a branch.
    """

    def __init__(self, threads: Indices) -> None:
        self.threads = threads
        self.going = np.arange(len(threads))
        self.left: list[Indices] = []
        self.decides: Callable[[], None] = lambda: None

    def number(self, of_threads: NDArray[np.integer[Any]]) -> Any:
        """A number per thread of the block, as the kernel sees it: those of this group's threads."""
        if len(self.threads) == 1:
            return of_threads[self.threads[0]]
        _running.group = self
        return of_threads[self.threads].view(Values)

    def own(self, number: Any) -> Any:
        """The numbers of the threads still going; a number that is the same for all is returned as it is."""
        return number.of_those_going() if isinstance(number, Values) else number

    def keep(self, staying: NDArray[np.bool_]) -> None:
        """Continue with the threads still going for which ``staying`` is true; the others leave."""
        if not staying.all():
            left, self.going = self.going[~staying], self.going[staying]
            self.leave(left, alone=len(self.going) < _FEW)

    def leave(self, positions: Indices, *, alone: bool) -> None:
        """Threads at these positions in ``threads`` leave, to run one by one or together."""
        left = self.threads[positions]
        self.left += np.split(left, len(left)) if alone else [left]


class _Running(threading.local):
    group: Group


_running = _Running()


class Values(np.ndarray[Any, Any]):
    """One number per thread of the group that runs."""

    @property
    def group(self) -> Group:
        """The group that runs in this thread of Python."""
        return _running.group

    def __bool__(self) -> bool:
        self.group.decides()
        own = self.of_those_going()
        true = int(np.count_nonzero(own))
        most = 2 * true >= len(own)
        if 0 < true < len(own):
            self.group.keep((own != 0) == most)
        return most

    def __index__(self) -> int:
        values = self.of_those_going()
        self.group.keep(values == values[0])
        return int(values[0])

    __int__ = __index__

    def of_those_going(self) -> NDArray[Any]:
        """The numbers of the threads still going."""
        numbers, going = np.asarray(self), self.group.going
        return numbers if len(going) == len(numbers) else numbers[going]


# ``x += 1`` must make a new number, as for ints; an array would change in place, under all its names.
for _operator in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    setattr(Values, f"__i{_operator}__", getattr(np.ndarray, f"__{_operator}__"))


def run(threads: int, kernel: Callable[[Group], None]) -> None:
    """Call ``kernel`` with groups of threads until each of ``threads`` threads has run to the end.

    If an error occurs in a group, its threads run one by one, since numbers can do what arrays cannot. So do threads
    that leave a branch at which few stay.

    Raises:
        Exception: what a thread raises that runs alone.
    """
    waiting = [np.arange(threads)]
    while waiting:
        group = Group(waiting.pop())
        try:
            kernel(group)
        except Exception:
            if len(group.threads) == 1:
                raise
            group.leave(group.going, alone=True)
            group.going = group.going[:0]
        waiting += group.left
