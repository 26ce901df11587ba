"""Predictions for a case from its trace; several processes trace many cases."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Queue
from subprocess import DEVNULL, PIPE, Popen
from threading import Thread

from pydantic import TypeAdapter

from smembench.explain.analysis import explain, mean
from smembench.explain.occupancy import occupancy
from smembench.model.case import Case
from smembench.model.measurement import Prediction

_WORTH_IT = 16
"""Fewest traces for which several processes save time."""
_MOST_PROCESSES = 16


@dataclass(frozen=True, slots=True)
class Figures:
    """A trace's figures, which hold for any device, and what the occupancy depends on."""

    prediction: Prediction
    threads: int
    shared_bytes: int


_CASES = TypeAdapter(list[Case])
_FIGURES: TypeAdapter[Figures | None] = TypeAdapter(Figures | None)
_traced: dict[Case, Figures | None] = {}


def predict(case: Case, capability: str | None, registers: int | None = None) -> Prediction:
    """Predictions for a case; all None for CPU cases and for kernels that cannot be traced.

    Args:
        case: the case that is timed.
        capability: the device's compute capability.
        registers: per thread of the kernel, if known.
    """
    if case.kind != "cuda":
        return Prediction()
    key = _key(case)
    if key not in _traced:
        _traced[key] = _figures(key)
    figures = _traced[key]
    if figures is None:
        return Prediction()
    try:
        resident = occupancy(capability or "", figures.threads, figures.shared_bytes, registers).fraction
    except ValueError:  # a capability whose limits are not known
        resident = None
    return replace(figures.prediction, occupancy=resident)


def trace_together(cases: Iterable[Case], done: Callable[[Case, int, int], None]) -> None:
    """Trace the cases that ``predict`` will need, in several processes; if there are few, leave them to ``predict``.

    A trace takes a few milliseconds, or up to three seconds if blocks at the edges differ, and a sweep can have two
    hundred cases. ``done`` is called with each traced case, its number and the number of cases. If a process ends
    early, ``predict`` traces what is missing.
    """
    missing = [key for key in dict.fromkeys(_key(case) for case in cases if case.kind == "cuda") if key not in _traced]
    processes = min(_cores(), len(missing), _MOST_PROCESSES)
    if len(missing) < _WORTH_IT or processes < 2:
        return
    # Slow cases, large kernels at ragged sizes, are neighbours in a plan: each process takes every n-th case.
    shares = [missing[first::processes] for first in range(processes)]
    running = [_start(share) for share in shares]
    lines: Queue[tuple[Case, bytes] | None] = Queue()
    readers = [Thread(target=_read, args=(*both, lines), daemon=True) for both in zip(running, shares, strict=True)]
    for reader in readers:
        reader.start()
    try:
        ended, number = 0, 0
        while ended < processes:
            line = lines.get()
            if line is None:
                ended += 1
                continue
            case, figures = line
            _traced[case] = _FIGURES.validate_json(figures)
            number += 1
            done(case, number, len(missing))
    finally:
        for process, reader in zip(running, readers, strict=True):
            process.kill()
            process.wait()
            reader.join()


def _start(cases: Sequence[Case]) -> Popen[bytes]:
    """Start a process that traces the cases from its standard input and prints a line of JSON per case."""
    process: Popen[bytes] = Popen(
        [sys.executable, "-m", "smembench.explain.prediction"],
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,  # Ctrl-C is the parent's to handle
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as given:
        given.write(_CASES.dump_json(list(cases)))
    return process


def _read(process: Popen[bytes], cases: Sequence[Case], lines: Queue[tuple[Case, bytes] | None]) -> None:
    assert process.stdout is not None
    with process.stdout as said:
        for case, line in zip(cases, said, strict=False):
            lines.put((case, line))
    lines.put(None)


def main() -> None:
    """Trace the cases on standard input."""
    for case in _CASES.validate_json(sys.stdin.read()):
        print(_FIGURES.dump_json(_figures(case)).decode(), flush=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _key(case: Case) -> Case:
    """One case for all with the same trace, which depends on neither device nor cache."""
    return replace(case, device="cuda:0", cache="warm")


def _figures(case: Case) -> Figures | None:
    """Figures from a trace; None for a kernel that cannot be traced, which is timed nevertheless."""
    try:
        explained = explain(case)
    except Exception:
        return None
    predicted = Prediction(
        load_conflict=explained.degree("load"),
        store_conflict=explained.degree("store"),
        load_sectors=explained.sectors("load"),
        store_sectors=explained.sectors("store"),
        constant_addresses=mean((access.addresses, access.requests) for access in explained.constant),
    )
    return Figures(predicted, explained.threads, explained.shared_bytes)


if __name__ == "__main__":
    main()
