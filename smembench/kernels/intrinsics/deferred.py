"""Asynchronous work in the simulator: started by an instruction, grouped by a commit, completed by a wait.

Hardware may do it at any time in between. The simulator does it at the wait, the latest possible time, and asserts that
what it reads has not changed since it was started, and that nothing else has written what it changes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Read = Callable[[], tuple["NDArray[Any]", ...]]


class Groups:
    """Groups of one kind of asynchronous work, kept separately for each simulated thread.

    ``what`` names the reader in error messages.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._groups: ContextVar[list[list[Callable[[], None]]]] = ContextVar(what)

    def _started(self) -> list[list[Callable[[], None]]]:
        """This thread's groups, the last one not yet committed."""
        groups = self._groups.get(None)
        if groups is None:
            groups = [[]]
            self._groups.set(groups)
        return groups

    def start(self, read: Read, work: Callable[..., None]) -> None:
        """Start some work, which gets the arrays that ``read`` returns."""
        before = [array.tobytes() for array in read()]

        def complete() -> None:
            arrays = read()
            now = [array.tobytes() for array in arrays]
            assert now == before, f"memory was changed before {self._what} had read it"
            work(*arrays)

        self._started()[-1].append(complete)

    def commit(self) -> None:
        """Make a group of what this thread started since its last commit."""
        self._started().append([])

    def finish(self, newest: int) -> None:
        """Complete all of this thread's groups but the ``newest`` ones."""
        groups = self._started()
        while len(groups) > newest + 1:
            for complete in groups.pop(0):
                complete()


class InFlight:
    """Values that asynchronous work changes, kept separately for each simulated thread: NaN until it is complete."""

    def __init__(self) -> None:
        self._pending: ContextVar[dict[int, tuple[NDArray[Any], int]]] = ContextVar("pending")

    def changing(self, values: NDArray[Any]) -> Callable[[Callable[[NDArray[Any]], Any]], None]:
        """Begin a change of some values; the function that it returns completes it, by the values before it."""
        pending = self._pending.get({})
        self._pending.set(pending)
        place = values.ctypes.data
        before, changes = pending.get(place, (values.copy(), 0))
        pending[place] = before, changes + 1
        values[:] = np.nan

        def change(work: Callable[[NDArray[Any]], Any]) -> None:
            assert np.isnan(values).all(), "values were written while work on them was in flight"
            before, changes = pending.pop(place)
            after = np.asarray(work(before), values.dtype)
            if changes > 1:
                pending[place] = after, changes - 1
            else:
                values[:] = after

        return change
