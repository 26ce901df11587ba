"""One sentence of what the numbers say.

It claims a difference only where the quartiles do not overlap, and nothing of times that were taken while the device
was throttled or the host busy.
"""

from __future__ import annotations

from collections.abc import Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.model.clauses import Result, time
from smembench.store.schema import Row
from smembench.toolchains.registry import is_port


def sentence(rows: Sequence[Row]) -> str:
    """What the problem says of its results, for rows of one size; "" when there is nothing to compare."""
    done = [row for row in rows if row.ok and not row.disturbed and not is_port(row.compiler)]
    clauses = PROBLEMS[done[0].problem].summary(done, compared) if done else []
    text = "; ".join(clauses)
    return text[:1].upper() + text[1:] + "." if text else ""


def compared(result: Result, other: Result, called: str = "") -> str:
    """``1.8× as fast as naiveGmem``, or that the two cannot be told apart; ``called`` names the other one."""
    called = called or other.kernel
    apart = _quartile(result, 3) < _quartile(other, 1) or _quartile(other, 3) < _quartile(result, 1)
    if not apart:
        return f"no different from {called} within the spread"
    ratio = time(other) / time(result)
    if ratio < 1:
        return f"slower than {called}: it takes {1 / ratio:.2f} times as long"
    return f"{ratio:.2f}× as fast as {called}" if ratio < 100 else f"{ratio:.0f}× as fast as {called}"


def _quartile(result: Result, which: int) -> float:
    return (result.elapsed_ms_q1 if which == 1 else result.elapsed_ms_q3) or 0.0
