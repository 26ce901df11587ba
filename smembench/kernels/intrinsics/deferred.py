"""The simulator's work in groups: what an instruction starts, and its thread waits for later.

A GPU may do such work at any time in between. Here it is done when the thread waits for its group, as late as it may
be, and what it reads has to be then what it was at the start.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

Read = Callable[[], tuple["NDArray[Any]", ...]]


class Groups:
    """Groups of one kind of work, of each simulated thread its own; ``what`` it is stands in errors."""

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
        found = [array.tobytes() for array in read()]

        def complete() -> None:
            arrays = read()
            assert [array.tobytes() for array in arrays] == found, f"memory was changed before {self._what} had read it"
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
