"""Run a kernel's Python once for all threads of a block that take the same path, instead of once per thread.

Numbers that differ between threads are arrays with one element per thread. Where one decides a branch, the path of most
of these threads is taken; the others start again later, and reach the same branch among themselves. A thread that
leaves a run repeats what it did there, so recording an access twice must do no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]

_FEW = 4
"""Fewest threads on one path for which arrays take less time than separate numbers."""


class Group:
    """Threads that run a kernel together.

    ``threads`` are their indices in the block, and ``going``, places in those, are the ones that have not left.
    """

    def __init__(self, threads: Indices) -> None:
        self.threads = threads
        self.going = np.arange(len(threads))
        self.left: list[Indices] = []

    def number(self, of_threads: Indices) -> Any:
        """What ``of_threads`` has for each thread of the block, as the kernel sees it."""
        if len(self.threads) == 1:
            return int(of_threads[self.threads[0]])
        values = of_threads[self.threads].view(_Values)
        values.group = self
        return values

    def own(self, number: Any) -> Any:
        """A number of each thread still going, or what is the same for all of them."""
        return number.of_those_going() if isinstance(number, _Values) else number

    def keep(self, staying: NDArray[np.bool_]) -> None:
        """Go on with those of the threads still going for which that is true."""
        if not staying.all():
            self.left.append(self.threads[self.going[~staying]])
            self.going = self.going[staying]


class _Values(np.ndarray[Any, Any]):
    """A number for each thread of a group."""

    group: Group

    def __array_finalize__(self, source: Any) -> None:
        if isinstance(source, _Values):
            self.group = source.group

    def __bool__(self) -> bool:
        truths = self.of_those_going() != 0
        most = 2 * int(np.count_nonzero(truths)) >= len(truths)
        self.group.keep(truths == most)
        return most

    def __index__(self) -> int:
        values = self.of_those_going()
        self.group.keep(values == values[0])
        return int(values[0])

    __int__ = __index__

    def of_those_going(self) -> NDArray[Any]:
        return np.asarray(self)[self.group.going]


# ``x += 1`` gives the name x another number; as an array's it would change it under all other names.
for _operator in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    setattr(_Values, f"__i{_operator}__", getattr(np.ndarray, f"__{_operator}__"))


def run(threads: int, kernel: Callable[[Group], None]) -> None:
    """Call ``kernel`` with groups until each of so many threads has gone the whole way.

    Threads of a group in which an error occurs are run one by one, so that what arrays cannot do numbers do, and so
    are those that a group leaves behind in which few go the same way.

    Raises:
        Exception: what a thread that runs alone raises.
    """
    waiting = [np.arange(threads)]
    while waiting:
        group = Group(waiting.pop())
        try:
            kernel(group)
        except Exception:
            if len(group.threads) == 1:
                raise
            group.left.append(group.threads[group.going])
            group.going = group.going[:0]
        alone = len(group.going) < _FEW
        for left in group.left:
            waiting += np.split(left, len(left)) if alone else [left]
