"""The devices that claims are judged for: those of a run, and the one of the stored reference run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from smembench.model.errors import SmembenchError
from smembench.store.load import load
from smembench.store.run import Run
from smembench.studies.probe.sheet import Sheet, measured, of_run
from smembench.studies.reproduce.measures import Here

REFERENCE = Path(__file__).parents[3] / "results" / "reference"
"""Stored runs, in a checkout; an installed package has none."""


def devices(run: Run) -> list[Here]:
    """The GPUs of a run, or the CPU if it has none, with the latencies of a data sheet in the run's folder.

    Raises:
        UsageError: for a damaged data sheet.
    """
    names = sorted({row.device for row in run.rows if row.device != "cpu"}) or ["cpu"]
    found = [Here(run, name) for name in names]
    sheet = of_run(run)
    return [_with_latency(here, sheet) if sheet and here.is_gpu else here for here in found]


def probed(run: Run) -> list[Here]:
    """The same for a run on this machine: latencies are measured now, if they can be."""
    found = []
    for here in devices(run):
        if here.is_gpu:
            with suppress(SmembenchError):  # the claims on latency then say that they need a probe
                here = _with_latency(here, measured(here.device, ["latency"]))
        found.append(here)
    return found


def _with_latency(here: Here, sheet: Sheet) -> Here:
    return replace(
        here,
        latency={
            figure.name: (figure.value, figure.low, figure.high)
            for figure in sheet.figures
            if figure.family == "latency" and figure.value and figure.low and figure.high
        },
    )


def reference(folder: Path = REFERENCE) -> Here | None:
    """The GPU of the newest stored run of the documents' cases; None where no runs are stored."""
    runs = sorted(folder.glob("*-documents"), reverse=True)
    return next((here for run in runs for here in devices(load(run)) if here.is_gpu), None)
