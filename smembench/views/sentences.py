"""One sentence of what the numbers say. It claims a difference only where the quartiles do not overlap."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.store.schema import Row


def sentence(rows: Sequence[Row]) -> str:
    """The ladder in words, for rows of one size; "" when there is nothing to compare."""
    done = [row for row in rows if row.ok]
    if not done:
        return ""
    return _transpose(done) if done[0].problem == "transpose" else _matmul(done)


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
