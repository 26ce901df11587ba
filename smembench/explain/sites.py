"""Where in the source an access of a traced kernel is made, by the functions that are running."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from smembench.explain.branches import counted
from smembench.explain.requests import WAITING, AccessSite
from smembench.kernels.intrinsics import async_copy
from smembench.kernels.intrinsics.async_copy import copy_element_async, copy_vector_async, copy_vector_async_if
from smembench.kernels.intrinsics.matrix import load_matrices, load_matrices_transposed, store_matrices_transposed
from smembench.kernels.intrinsics.traced import load_waiting
from smembench.model.formats import HALVES

_STORE_MATRICES = store_matrices_transposed(HALVES[0])
"""Those of other types have its name."""
WAYS: Mapping[str, str] = {
    **{each.__name__: "matrix" for each in (load_matrices, load_matrices_transposed, _STORE_MATRICES)},
    **{each.__name__: "asynchronous" for each in (copy_vector_async, copy_vector_async_if, copy_element_async)},
    load_waiting.__name__: WAITING,
}
"""The names of functions whose accesses are not counted as plain ones, with the ``AccessSite.way``."""

_LOWERED = (str(Path(__file__).parent), str(Path(async_copy.__file__).parent))
"""The files of a trace, and of functions that are lowered as a whole: line information has their callers' lines."""


class _Found(NamedTuple):
    """A site, the file of its statement, and the variables of the loops around it by frame, the innermost first."""

    site: AccessSite
    filename: str
    loops: Sequence[tuple[int, Sequence[str]]]


class Sites:
    """Finds the sites of accesses to memory by a kernel in the file ``filename``."""

    def __init__(self, filename: str) -> None:
        self._filename = filename
        # By the places of all functions that are running: looking at their files and lines took half of a trace's time.
        self._known: dict[tuple[object, ...], _Found] = {}

    def line(self) -> int:
        """The line of the nearest frame in the kernel's file; if a helper made the access, the line of its call."""
        return self.of_access("", "", "", 0)[0].line

    def of_access(self, space: str, kind: str, array: str, width: int) -> tuple[AccessSite, str, tuple[int, ...]]:
        """The site of an access that is being made, the file of the statement, and the passes of the loops around it.

        The passes are the values of the loops' variables, of the outermost loop first.
        """
        frames: list[FrameType] = []
        key: list[object] = [space, kind, array, width]
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            frames.append(frame)
            code = frame.f_code
            key += (id(code), frame.f_lasti)
            if code.co_filename == self._filename:
                break
            frame = frame.f_back
        found = self._known.get(places := tuple(key))
        if found is None:
            found = self._known[places] = self._looked_up(frames, space, kind, array, width)
        passes: list[int] = []
        for depth, variables in found.loops:
            known = frames[depth].f_locals
            passes[:0] = [number for each in variables if isinstance(number := known.get(each), int)]
        return found.site, found.filename, tuple(passes)

    def _looked_up(self, frames: Sequence[FrameType], space: str, kind: str, array: str, width: int) -> _Found:
        """What the frames say, of which the first are this file's."""
        way, place, filename = "", 0, ""
        loops = []
        for depth, frame in enumerate(frames):
            code = frame.f_code
            if not code.co_filename.startswith(_LOWERED):
                if not place:
                    place, filename = frame.f_lineno, code.co_filename
                if variables := counted(code.co_filename).get(frame.f_lineno):
                    loops.append((depth, variables))
            elif not place:
                way = WAYS.get(code.co_name, way)
        last = frames[-1]
        line = last.f_lineno if last.f_code.co_filename == self._filename else 0
        if space not in ("shared", "barrier", "fence"):
            place = 0
        return _Found(AccessSite(line, space, kind, array, width, way, place), filename, loops)
