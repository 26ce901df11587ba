"""``smembench explain``: what removes the bank conflicts, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smembench.explain.costs import Costs
from smembench.explain.cure import Change, Cure, cures, most_pad
from smembench.explain.layouts import Layout
from smembench.model.groups import grouped
from smembench.model.text import capital
from smembench.views.columns import compact
from smembench.views.sections import Section


def cure_lines(explained: Costs) -> list[str]:
    """A line for each shared array with bank conflicts."""
    python = explained.trace.filename.endswith(".py")
    return [cure_line(cure, python=python and cure.declared is None) for cure in cures(explained)]


def cure_sections(lines: Sequence[str]) -> list[Section]:
    """The same below the tables."""
    return [Section("What removes the conflicts", [], [], sentence=" ".join(lines))] if lines else []


def cure_line(cure: Cure, *, python: bool) -> str:
    """The cure for an array's conflicts in the notation of its source: ``tile[r, c]`` or ``tile[r][c]``."""
    if cure.fixed:
        return f"Cure: none tried, because the TMA or tensor cores access {cure.tile.array.name} as tiles, too."
    bad = [change for change in cure.changes if change.before > change.ideal]
    if cure.best is None or not cure.cures:
        turns = f"{_mean(bad, 'before')} wavefronts per request of {_who(bad)}, at best {_mean(bad, 'after')}"
        turns += f", without conflicts {_mean(bad, 'ideal')}"
        every = f"all accesses of {cure.tile.array.name}"
        return f"Cure: {_tried(cure)} removes a third of the conflicts of {every}: {turns}."
    better = [change for change in cure.changes if change.after < change.before]
    worse = [change for change in cure.changes if change.after > change.before]
    how = _pad(cure, python=python) if cure.pad_bytes else _swizzle(cure, python=python)
    turns = f"{_mean(better, 'before')} -> {_mean(better, 'after')} wavefronts per request"
    if cure.best.free:
        return f"Cure: {how} makes {_who(better)} free of conflicts: {turns}."
    turns += f", {_mean(better, 'ideal')} without conflicts"
    others = f", but raises {_who(worse)}: {_mean(worse, 'before')} -> {_mean(worse, 'after')}" if worse else ""
    return f"Cure: {how} lowers the conflicts of {_who(better)}: {turns}{others}. {capital(_tried(cure))} removes all."


def _pad(cure: Cure, *, python: bool) -> str:
    wide = f"{cure.pad_bytes} byte{'s' if cure.pad_bytes > 1 else ''}"
    pad, written = f"a pad of {wide} per {cure.row_bytes} bytes", _padded(cure, python=python)
    return f"{pad} of {cure.tile.array.name}{f' ({written})' if written else ''}"


def _padded(cure: Cure, *, python: bool) -> str:
    """The pad as source code; "" if the element type is unknown."""
    best, array, columns = cure.best, cure.tile.array, cure.tile.columns
    if best is None or not cure.typed:
        return ""
    pad = best.layout.pad
    if len(array.shape) == 1:
        row = f"i {'//' if python else '/'} {columns}"
        return f'element i at "{cure.tile.pointer}[i + {row}{f" * {pad}" if pad > 1 else ""}]"'
    parts = _parts(cure, python=python)
    if cure.declared is not None:
        return f'"{cure.declared.padded(array.name, pad, columns)}"{parts}'
    return f"shape {(*array.shape[:-1], array.shape[-1] + pad)}{parts}"


def _parts(cure: Cure, *, python: bool) -> str:
    """The index of a column in a row that is split into several."""
    columns = cure.tile.columns
    if not cure.split:
        return ""
    at = f"x // {columns}, x % {columns}" if python else f"x / {columns}][x % {columns}"
    return f', column x at "[{at}]"'


def _swizzle(cure: Cure, *, python: bool) -> str:
    tile, layout = cure.tile, Layout() if cure.best is None else cure.best.layout
    written = tile.expression(layout, brackets=not python)
    flat = len(tile.array.shape) == 1
    where = f" in rows of {tile.columns}" if flat or cure.split else ""
    where += "" if not where else " elements" if cure.typed else f" elements of {tile.array.itemsize} bytes"
    return f'a swizzle of {tile.array.name}, element (r, c){where} at "{written}",'


def _tried(cure: Cure) -> str:
    """The layouts tried, as the subject of a sentence."""
    pads = f"no pad of up to {most_pad(cure.tile) * cure.tile.array.itemsize} bytes per row"
    return f"{pads} and no XOR of columns" if cure.tried_swizzles else pads


def _who(changes: Sequence[Change]) -> str:
    """The accesses: ``the loads in lines 4 and 9 and the stores in line 2``; of one without a kernel ``the load``."""
    kinds = grouped(changes, lambda change: change.site.kind)
    lines = {kind: tuple(sorted({change.site.line for change in group})) for kind, group in kinds.items()}
    alike = grouped(lines, lambda kind: lines[kind])
    return " and ".join(_accesses(kinds, numbers) for numbers, kinds in alike.items())


def _accesses(kinds: Sequence[str], numbers: Sequence[int]) -> str:
    if not any(numbers):
        return "the " + " and the ".join(kinds)
    return f"the {' and '.join(f'{kind}s' for kind in kinds)} in {at_lines(numbers)}"


def at_lines(numbers: Iterable[int]) -> str:
    """``line 7``, ``lines 4, 7 and 9``: each line once, in their order."""
    *before, last = map(str, sorted(set(numbers)))
    return f"lines {', '.join(before)} and {last}" if before else f"line {last}"


def _mean(changes: Sequence[Change], figure: str) -> str:
    requests = sum(change.requests for change in changes)
    return compact(sum(getattr(change, figure) * change.requests for change in changes) / requests)
