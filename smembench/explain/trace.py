"""Traces: what the traced blocks of a launch did, by lines of the source."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from linecache import getline, getlines
from math import prod
from typing import NamedTuple

from smembench.explain.mistakes import Mistake, Unfollowed
from smembench.explain.requests import UNSERVED, Accesses, Merged, Request
from smembench.explain.tiles import TileAccess


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A shared array of the kernel; ``base`` is the byte at which it begins."""

    name: str
    shape: tuple[int, ...]
    itemsize: int
    base: int

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return prod(self.shape) * self.itemsize


class Sample(NamedTuple):
    """The number of blocks that were run, and of those in the grid."""

    run: int
    of: int


@dataclass(frozen=True, slots=True)
class Trace:
    """All accesses of the traced blocks, shared arrays, source file, the blocks' indices, mistakes.

    ``unfollowed`` is what the trace left out because it depends on data. ``merged`` is what the compiler merged, where
    the machine code is known, and ``unmatched`` the (space, kind) of accesses whose widths there are not the source's,
    for a reason that the trace does not show. ``tiles`` counts the accesses to tiles by the TMA and by tensor cores.
    ``sampled`` is there where the figures are estimates from a sample of the blocks.
    """

    accesses: tuple[Accesses, ...]
    shared: tuple[SharedArray, ...]
    filename: str
    blocks: tuple[tuple[int, ...], ...]
    mistakes: tuple[Mistake, ...] = ()
    unfollowed: tuple[Unfollowed, ...] = ()
    merged: tuple[Merged, ...] = ()
    unmatched: tuple[tuple[str, str], ...] = ()
    tiles: Mapping[TileAccess, int] = field(default_factory=dict)
    sampled: Sample | None = None

    @property
    def requests(self) -> list[Request]:
        """The accesses to memory as requests of warps, one by one: many, unlike what ``launch`` makes of them."""
        served = (accesses for accesses in self.accesses if accesses.site.space not in UNSERVED)
        return [request for accesses in served for request in accesses.requests()]

    def reasons(self, *, partial: bool) -> list[str]:
        """Reasons why its figures are no result, by line: mistakes, and unless ``partial`` what it left out."""
        left_out = () if partial else self.unfollowed
        reasons = [f"line {mistake.line}: {mistake.text}" for mistake in self.mistakes]
        return reasons + [f"line {omission.line}: {omission.text}" for omission in left_out]

    def source(self, line: int) -> str:
        """A line of the kernel's source; a statement over several lines is joined into one."""
        return _over_several_lines(self.filename).get(line) or getline(self.filename, line).strip()


@cache
def _over_several_lines(filename: str) -> dict[int, str]:
    """The simple statements of a file in Python that span several lines, by their first line."""
    if not filename.endswith(".py"):
        return {}
    tree = ast.parse("".join(getlines(filename)))
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    return {node.lineno: ast.unparse(node) for node in statements if (node.end_lineno or 0) > node.lineno}
