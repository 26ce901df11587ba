"""One sentence of what the numbers say.

It claims a difference only where the quartiles do not overlap, and nothing of times that were taken while the device
was throttled or the host busy.
"""

from __future__ import annotations

from collections.abc import Sequence

from smembench.store.schema import Row
from smembench.toolchains.registry import is_port


def sentence(rows: Sequence[Row]) -> str:
    """The ladder in words, for rows of one size; "" when there is nothing to compare."""
    done = [row for row in rows if row.ok and not row.disturbed and not is_port(row.compiler)]
    if not done:
        return ""
    tell = {
        "transpose": _transpose,
        "matmul": _matmul,
        "constant": _constant,
        "transfer": _transfer,
        "roundtrip": _roundtrip,
        "access": _access,
    }.get(done[0].problem)
    return tell(done) if tell else ""


def _transpose(rows: Sequence[Row]) -> str:
    naive, shared, padded, copy = (
        _fastest(rows, name) for name in ("naiveGmem", "transposeSmem", "transposeSmemPad", "copyGmem")
    )
    through = shared or padded
    parts = []
    if naive and through:
        parts.append(f"Through shared memory the transpose is {_compared(through, naive)}")
    if shared and padded:
        unpadded = [row for row in rows if row.kernel == shared.kernel]
        same_block = next((row for row in unpadded if row.block == padded.block), shared)
        because = _conflict_change(same_block, padded)
        parts.append(f"in {padded.block} blocks padding makes it {_compared(padded, same_block)}{because}")
    best = min((row for row in (shared, padded) if row), key=_time, default=None)
    if copy and best:
        percent = f"{100 * _time(copy) / _time(best):.0f} %"
        parts.append(f"{best.kernel} {best.block} reaches {percent} of the fastest copyGmem")
    return _join(parts)


def _matmul(rows: Sequence[Row]) -> str:
    cpu, naive, tiled = (_fastest(rows, name) for name in ("cpu", "naive", "tiled"))
    parts = []
    if naive and tiled:
        parts.append(f"Tiled {tiled.block} is {_compared(tiled, naive)} (fastest of each)")
    best = min((row for row in (naive, tiled) if row), key=_time, default=None)
    if cpu and best:
        parts.append(f"{best.kernel} is {_compared(best, cpu, 'the triple loop on one CPU thread')}")
    return _join(parts)


def _constant(rows: Sequence[Row]) -> str:
    """Diverging reads of each memory against uniform ones, then uniform ones against those of global memory."""
    pairs = [(f"{memory}Diverging", f"{memory}Uniform") for memory in ("constant", "shared", "global")]
    pairs += [("sharedUniform", "globalUniform"), ("constantUniform", "globalUniform")]
    found = [(_fastest(rows, one), _fastest(rows, other)) for one, other in pairs]
    parts = [f"{one.kernel} is {_compared(one, other)}" for one, other in found if one and other]
    return _join([f"of the stencils {parts[0]}", *parts[1:]]) if parts else ""


def _transfer(rows: Sequence[Row]) -> str:
    parts = []
    for way, words in (("h2d", "host to device"), ("d2h", "device to host")):
        pageable, pinned = (_fastest(rows, way + kind) for kind in ("Pageable", "Pinned"))
        if pageable and pinned:
            parts.append(f"{words} page-locked memory is {_compared(pinned, pageable, 'pageable')}")
    return _join(parts)


def _roundtrip(rows: Sequence[Row]) -> str:
    cpu = _fastest(rows, "addOne")
    gpu = [row for row in (_fastest(rows, "addOnePageable"), _fastest(rows, "addOnePinned")) if row]
    if cpu is None or not gpu:
        return ""
    loop = "the loop on one CPU thread"
    return _join([f"with its copies {row.kernel} is {_compared(row, cpu, loop)}" for row in gpu])


def _access(rows: Sequence[Row]) -> str:
    """The fastest pattern against what the banks deliver, the slowest against it, and what padding buys."""
    best, worst = min(rows, key=_time), max(rows, key=_time)
    parts = []
    if best.bytes_per_clock is not None and best.percent_of_peak is not None:
        share = f"{best.percent_of_peak:.0f} % of what the banks deliver"
        parts.append(f"the fastest, {_pattern(best)}, reaches {best.bytes_per_clock:.1f} bytes a clock, {share}")
    if worst is not best:
        parts.append(f"{_pattern(worst)} ({_conflicts(worst)}) is {_compared(worst, best, _pattern(best))}")
    padded = next((row for row in rows if row.pad), None)
    unpadded = padded and next(
        (row for row in rows if (row.kernel, row.block) == (padded.kernel.replace("Pad", ""), padded.block)), None
    )
    if padded and unpadded:
        change = _conflict_change(unpadded, padded)
        parts.append(f"{_pattern(padded)} is {_compared(padded, unpadded)}{change}")
    return _join(parts)


def _pattern(row: Row) -> str:
    """A row by its kernel and block, or its stride."""
    return f"stride {row.stride}" if row.stride else " ".join(str(part) for part in (row.kernel, row.block) if part)


def _compared(row: Row, other: Row, called: str = "") -> str:
    """``1.8× as fast as naiveGmem``, or that the two cannot be told apart."""
    called = called or other.kernel
    apart = _quartile(row, 3) < _quartile(other, 1) or _quartile(other, 3) < _quartile(row, 1)
    ratio = _time(other) / _time(row)
    if not apart:
        return f"no different from {called} within the spread"
    if ratio < 1:
        return f"slower than {called}: it takes {1 / ratio:.2f} times as long"
    return f"{ratio:.2f}× as fast as {called}" if ratio < 100 else f"{ratio:.0f}× as fast as {called}"


def _fastest(rows: Sequence[Row], kernel: str) -> Row | None:
    return min((row for row in rows if row.kernel == kernel), key=_time, default=None)


def _time(row: Row) -> float:
    return row.elapsed_ms or 0.0


def _conflict_change(before: Row, after: Row) -> str:
    """Why padding helped or did not: the conflicts predicted without and with it."""
    if None in (before.predicted_load_conflict, after.predicted_load_conflict):
        return ""
    return f" ({_conflicts(before)} become {_conflicts(after)})"


def _conflicts(row: Row) -> str:
    sides = (("loads", row.predicted_load_conflict), ("stores", row.predicted_store_conflict))
    found = [f"{degree:.3g}-way conflicts of {side}" for side, degree in sides if degree and degree > 1]
    return " and ".join(found) or "no conflicts"


def _quartile(row: Row, which: int) -> float:
    return (row.elapsed_ms_q1 if which == 1 else row.elapsed_ms_q3) or 0.0


def _join(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + "." if text else ""
