"""Predictions for a case before it is timed, from its trace; many cases are traced by several processes."""

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
"""Fewest traces for which starting processes saves time."""
_MOST_PROCESSES = 16


@dataclass(frozen=True, slots=True)
class Figures:
    """A trace's figures, which hold on any device, and what the occupancy depends on."""

    prediction: Prediction
    threads: int
    shared_bytes: int


_CASES = TypeAdapter(list[Case])
_FIGURES: TypeAdapter[Figures | None] = TypeAdapter(Figures | None)
_traced: dict[Case, Figures | None] = {}


def predict(case: Case, capability: str | None, registers: int | None = None) -> Prediction:
    """Predictions for a case; all None for CPU cases and for kernels that cannot be traced.

    Args:
        case: what is timed.
        capability: the device's compute capability.
        registers: those a thread of the kernel has, where they are known.
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
    """Trace what ``predict`` will need of these cases by several processes; where they are few it is left to do it.

    A trace takes some milliseconds to three seconds, where blocks at the edges differ, and a sweep can have two
    hundred. ``done`` is called with a case that was traced, its number and how many there are. What a process that
    ends early leaves, ``predict`` traces.
    """
    missing = [key for key in dict.fromkeys(_key(case) for case in cases if case.kind == "cuda") if key not in _traced]
    processes = min(_cores(), len(missing), _MOST_PROCESSES)
    if len(missing) < _WORTH_IT or processes < 2:
        return
    # The slow ones, large kernels at ragged sizes, are neighbours in a plan: each process takes one of so many cases.
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
    """A process that traces cases, which it gets as its argument, and prints a line of JSON for each."""
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
    """Of all cases with the same trace one: neither the device nor the cache decides it."""
    return replace(case, device="cuda:0", cache="warm")


def _figures(case: Case) -> Figures | None:
    """From a trace; None for a kernel that cannot be traced, which is timed all the same."""
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
