"""All cases of a problem as one table, to sort and to filter."""

from __future__ import annotations

from smembench.kernels.problems import PROBLEMS
from smembench.stats.summary import MIN_SAMPLES
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.columns import figures, percentage, within
from smembench.views.sections import Section, device_names, interval, label, notes, size_text, table


def cases(run: Run) -> Section:
    """The rows of one problem in all sizes, dtypes and cache modes."""
    problem = PROBLEMS[run.rows[0].problem]
    more = {
        "dtype": lambda row: row.dtype,
        "cache": lambda row: row.cache,
        "by": lambda row: row.compiler,
        "on": lambda row: row.device,
    }
    columns = {
        "kernel": label,
        "size": lambda row: size_text(row.case),
        "elapsed ms": lambda row: within(row.elapsed_ms, row.interval) or row.status,
        **figures(problem, problem.texts.columns, run.rows),
        "95 % CI": interval,
        "spread": _spread,
        **{name: text for name, text in more.items() if len(set(map(text, run.rows))) > 1},
    }
    return table(
        f"{device_names(run)} · {problem.texts.title}: every case",
        run.rows,
        {name: text for name, text in columns.items() if any(map(text, run.rows))},
        words=("kernel", "size", *more),
    ).below(notes=notes(run.rows))


def _spread(row: Row) -> str:
    """Half of the quartiles' distance, in % of the median; "" for too few samples."""
    if row.elapsed_ms is None or row.elapsed_ms_q1 is None or row.elapsed_ms_q3 is None or row.samples < MIN_SAMPLES:
        return ""
    return percentage(50 * (row.elapsed_ms_q3 - row.elapsed_ms_q1) / row.elapsed_ms)
