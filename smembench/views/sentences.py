"""One sentence that says what a table's numbers mean.

It claims a difference only if it is beyond the noise (``stats.differs``), and leaves out times that were taken while
the device was throttled or the host busy.
"""

from __future__ import annotations

from functools import partial

from smembench.kernels.problems import PROBLEMS
from smembench.model.clauses import time
from smembench.model.text import capital
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import difference
from smembench.toolchains.registry import is_port


def sentence(run: Run) -> str:
    """The problem's summary of a run of one size; "" if there is nothing to compare."""
    done = [row for row in run.rows if row.ok and not row.disturbed and not is_port(row.compiler)]
    clauses = PROBLEMS[done[0].problem].summary(done, partial(compared, run)) if done else []
    text = "; ".join(clauses)
    return capital(text) + "." if text else ""


def compared(run: Run, result: Row, other: Row, called: str = "") -> str:
    """``1.8× as fast as naiveGmem``, or that the difference is within the noise; ``called`` names the other one."""
    called = called or other.kernel
    effect = difference(run, other, result)
    if effect is None:
        return f"not compared with {called}: too few samples"
    if not effect.differs:
        return f"no different from {called} within the noise"
    ratio = time(other) / time(result)
    if ratio < 1:
        return f"slower than {called}: it takes {1 / ratio:.2f} times as long"
    return f"{ratio:.2f}× as fast as {called}" if ratio < 100 else f"{ratio:.0f}× as fast as {called}"
