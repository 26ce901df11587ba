"""The devices that claims are judged for: those of a run, and the one of the stored reference run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from smembench.model.errors import SmembenchError
from smembench.store.load import load
from smembench.store.run import Run
from smembench.studies.probe.sheet import IN_RUN, Sheet, of_run, read, repeated
from smembench.studies.reproduce.measures import Here, Interval

_PROCESSES = 3
REFERENCE = Path(__file__).parents[3] / "results" / "reference"
"""Stored runs, in a checkout; an installed package has none."""


def devices(run: Run) -> list[Here]:
    """The GPUs of a run, or the CPU if it has none, with the latencies of a data sheet in the run's folder.

    Raises:
        UsageError: for a damaged data sheet.
    """
    names = sorted({row.device for row in run.rows if row.device != "cpu"}) or ["cpu"]
    places = [Here(run, name) for name in names]
    sheet = of_run(run)
    return [_with_latency(here, sheet) if sheet and here.is_gpu else here for here in places]


def probed(run: Run) -> list[Here]:
    """The same for a run on this machine: latencies are measured now, if they can be."""
    places = []
    for here in devices(run):
        if here.is_gpu:
            with suppress(SmembenchError):  # the claims on latency then say that they need a probe
                here = _with_latency(here, repeated(here.device, ["latency"], _PROCESSES))
        places.append(here)
    return places


def _with_latency(here: Here, sheet: Sheet) -> Here:
    """The latencies of a sheet, in intervals that contain those of all stored sheets of the same model.

    The interval of one process leaves out what differs between processes and cards.
    """
    latencies = _latencies(sheet)
    for other in _stored(sheet.device.model):
        for name, (_, low, high) in _latencies(other).items():
            if name in latencies:
                value, least, most = latencies[name]
                latencies[name] = value, min(least, low), max(most, high)
    return replace(here, latency=latencies)


def _latencies(sheet: Sheet) -> dict[str, Interval]:
    return {
        figure.name: (figure.value, figure.low, figure.high)
        for figure in sheet.figures
        if figure.family == "latency" and figure.value and figure.low and figure.high
    }


@cache
def _stored(model: str) -> list[Sheet]:
    """The stored data sheets of a model."""
    sheets = (read(path) for path in sorted([*REFERENCE.glob("*-probe*.json"), *REFERENCE.glob(f"*/{IN_RUN}")]))
    return [sheet for sheet in sheets if sheet.device.model == model]


def reference(folder: Path = REFERENCE) -> Here | None:
    """The GPU of the newest stored run of the documents' cases; None where no runs are stored."""
    runs = sorted(folder.glob("*-documents"), reverse=True)
    return next((here for run in runs for here in devices(load(run)) if here.is_gpu), None)
