"""Memory of a traced kernel that is not the package's: what it loads is unknown, or is the data that was given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.explain.foreign_index import Indexed
from smembench.explain.functions import Cast, integer
from smembench.explain.lockstep import Values
from smembench.explain.recorder import AddressArray, Recorder
from smembench.explain.requests import AccessSite
from smembench.explain.unknown import Unfollowed, Unknown
from smembench.launches.array_argument import ArrayArgument
from smembench.model.errors import UsageError

Data = NDArray[Any]

MOST_ACCESSES = 2**24
"""Accesses by threads, in all traced blocks: about 20 s of work."""

_PER_CALL = 32
"""An access by a single thread takes as long as one by so many threads together."""


class ForeignRecorder(Recorder):
    """Records what a kernel does that anybody wrote."""

    _work = 0

    def unknown(self, source: str, remedy: str = "") -> Unknown:
        """A value that the trace does not know."""
        return Unknown(self._needed, source, remedy)

    def _needed(self, unknown: Unknown, what: str) -> None:
        self.unfollowed.add(Unfollowed(self.sites.line(), what, unknown.source, unknown.remedy))

    def note(self, array: AddressArray, kind: str, width: int, indices: tuple[Any, ...]) -> AccessSite:
        """As ``Recorder.note``.

        Raises:
            UsageError: if the trace would take too long.
        """
        self._work += max(len(self.group.going), _PER_CALL)
        if self._work > MOST_ACCESSES:
            raise UsageError(
                f"line {self.sites.line()}: the trace has more than {MOST_ACCESSES} accesses by threads and would take "
                "too long; give smaller arrays or shorter loops, whose conflicts are the same"
            )
        return super().note(array, kind, width, indices)

    def array(self, space: str, name: str, shape: tuple[int, ...], base: int, dtype: str) -> ForeignArray:
        """An array whose accesses are recorded, without data."""
        return ForeignArray(self, space, name, shape, base, dtype)

    def argument(self, name: str, argument: ArrayArgument, base: int) -> ForeignArray:
        """An array of the launch whose first element lies at ``base``."""
        array = self.array("global", name, argument.shape, base, str(argument.dtype))
        array.data, array._strides = argument.data, list(argument.steps)
        return array

    def given(self, space: str, name: str, data: Data, base: int) -> ForeignArray:
        """An array with the data that it has at launch."""
        array = ForeignArray(self, space, name, data.shape, base, str(data.dtype))
        array.data, array._strides = data, list(data.strides)
        return array

    def constant_array(self, like: Any) -> ForeignArray:
        """In place of ``cuda.const.array_like``; also for the arrays of the host that a kernel names."""
        name, self._constants = f"constant{self._constants}", self._constants + 1
        if isinstance(like, ForeignArray):
            return like
        return self.given("constant", name, np.asarray(like), 0)


class ForeignArray(Indexed, AddressArray):
    """An array as Numba has it in kernels: attributes, negative indices, views.

    Attributes:
        data: what loads return; without it they return ``Unknown``. Stores do not change it.
    """

    _recorder: ForeignRecorder
    data: Data | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """As NumPy's."""
        return self._shape

    @property
    def dtype(self) -> Cast:
        """The type of an element, for casts and for shared arrays."""
        return Cast(self._zero.dtype)

    @property
    def strides(self) -> tuple[int, ...]:
        """As NumPy's."""
        return tuple(self._strides)

    def load(self, indices: tuple[Any, ...]) -> Any:
        """Record a load; its value."""
        found = self._touched(indices, "load")
        if found is not None and self.data is not None:
            return self._element(self.data, found)
        remedy = f"; give its data, a .npy file in place of {self.name}" if self.space == "global" else ""
        return self._recorder.unknown(f"data of {self.name}", remedy)

    def store(self, indices: tuple[Any, ...], value: Any) -> None:
        """Record a store."""
        self._touched(indices, "store")

    def update(self, index: Any, *values: Any) -> Any:
        """In place of the functions of ``cuda.atomic``, which return the old value."""
        self._touched(index if isinstance(index, tuple) else (index,), "atomic")
        return self._recorder.unknown(f"what an atomic on {self.name} returns")

    def _touched(self, indices: tuple[Any, ...], kind: str) -> tuple[Any, ...] | None:
        """Record an access and return its indices; None if one is unknown."""
        for index in indices:
            if isinstance(index, Unknown):
                verb = {"load": "a load of", "store": "a store to", "atomic": "an atomic on"}[kind]
                index.needed(f"the index of {verb} {self.name}")
                return None
        found = tuple(signed(index) for index in indices)
        found = tuple(index + (index < 0) * side for index, side in zip(found, self._shape, strict=True))
        self._access(found, 1, kind)
        return found

    def _element(self, data: Data, indices: tuple[Any, ...]) -> Any:
        inside = tuple(np.clip(index, 0, side - 1) for index, side in zip(indices, data.shape, strict=True))
        found = data[inside]
        found = integer(found) if data.dtype.kind in "iu" else found
        return found.view(Values) if isinstance(found, np.ndarray) else found


class LocalArray(Indexed):
    """A thread's own array: holds what is stored, by index; accesses are not recorded."""

    def __init__(self, shape: Any) -> None:
        self.shape: tuple[int, ...] = shape if isinstance(shape, tuple) else (shape,)
        self._held: dict[tuple[int, ...], Any] = {}
        self._lost: Unknown | None = None

    def load(self, indices: tuple[Any, ...]) -> Any:
        """What was stored; unknown after a store to an unknown index."""
        place = self._place(indices)
        if isinstance(place, Unknown) or self._lost is not None:
            return place if isinstance(place, Unknown) else self._lost
        return self._held.get(place, 0)

    def store(self, indices: tuple[Any, ...], value: Any) -> None:
        """Hold a value."""
        place = self._place(indices)
        if isinstance(place, Unknown):
            self._lost = place
        else:
            self._held[place] = value

    def _place(self, indices: tuple[Any, ...]) -> tuple[int, ...] | Unknown:
        unknown = [index for index in indices if isinstance(index, Unknown)]
        return unknown[0] if unknown else tuple(int(index) for index in indices)


def signed(index: Any) -> Any:
    """An index, or one per thread, in a type that no address overflows."""
    return index.astype(np.int64) if isinstance(index, np.ndarray) else int(index)
