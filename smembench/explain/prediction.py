"""Predictions for a case from its trace; several processes compile and trace many cases."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from select import select
from subprocess import DEVNULL, PIPE, Popen

from pydantic import TypeAdapter

from smembench.explain.occupancy import occupancy
from smembench.launches.live import is_token
from smembench.model.case import UNIFORM, Case
from smembench.model.child import child_command
from smembench.model.groups import grouped
from smembench.model.measurement import Prediction
from smembench.model.progress import unseen
from smembench.model.text import one_line
from smembench.model.user_launch import UNCHECKED
from smembench.store.assemble import Predict

_WORTH_IT = 4
"""Fewest traces for which several processes save time."""
_MOST_PROCESSES = 16
_SILENCE_SECONDS = 120.0
"""Longer than a trace takes, with the import of a file and its libraries."""
_PIPE_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class Figures:
    """A trace's figures, which hold for any device, and what the occupancy depends on.

    ``sectors`` of global memory and ``wavefronts`` of shared memory are those of a launch.
    """

    prediction: Prediction
    threads: int = 0
    shared_bytes: int = 0
    sectors: float = 0.0
    wavefronts: float = 0.0


_CASES = TypeAdapter(list[Case])
_TRACED = TypeAdapter(tuple[Case, Figures | None])
_traced: dict[Case, Figures | None] = {}


def predict(case: Case, capability: str | None, registers: int | None = None) -> Prediction:
    """Predictions for a case on a device of this compute capability; ``registers`` are per thread, if known.

    All are None for CPU cases and for kernels that cannot be traced.
    """
    figures = figures_of(case)
    if figures is None or figures.prediction.unexplained:
        return figures.prediction if figures else Prediction()
    try:
        resident = occupancy(capability or "", figures.threads, figures.shared_bytes, registers).fraction
    except ValueError:  # a capability whose limits are not known
        resident = None
    return replace(figures.prediction, occupancy=resident)


def figures_of(case: Case) -> Figures | None:
    """A case's figures, traced once per process; None for CPU cases, and for kernels without source to trace."""
    if case.kind != "cuda":
        return None
    key = _key(case)
    if key not in _traced:
        _traced[key] = _figures(key)
    return _traced[key]


def trace_together(cases: Iterable[Case], done: Callable[[Case, int, int], None]) -> None:
    """Trace the cases that ``predict`` will need, in several processes; if there are few, leave them to ``predict``.

    Kernels of the user's, whose files may be imported, are always traced in other processes. A kernel compiles in
    tenths of a second up to a few seconds, unless it was compiled before, and is traced in about one; a sweep can have
    two hundred cases. ``done`` is called with each traced case, its number and the number of cases. If a process ends
    early, or is silent for too long, ``predict`` traces what is missing; of kernels of the user's the one in progress
    is not explained.
    """
    keys = dict.fromkeys(_key(case) for case in cases if case.kind == "cuda")
    missing = [key for key in keys if key not in _traced and not (key.launch and is_token(key.launch.target))]
    processes = min(_cores(), len(missing), _MOST_PROCESSES)
    imports = any(case.launch is not None for case in missing)  # a file of the user's, which this process does not
    if (len(missing) < _WORTH_IT or processes < 2) and not imports:
        return
    # Slow kernels are neighbours in a plan: each process takes every n-th program, in all of its sizes.
    variants = list(grouped(missing, _program).values())
    shares = [[case for variant in variants[first::processes] for case in variant] for first in range(processes)]
    reading, writing = os.pipe()
    running = [_start(share, writing) for share in shares if share]
    os.close(writing)
    try:
        for number, line in enumerate(_lines(reading), 1):
            case, figures = _TRACED.validate_json(line)
            _traced[case] = figures
            done(case, number, len(missing))
    finally:
        os.close(reading)
        for process in running:
            process.kill()
            process.wait()
    for first in range(processes):
        users = (case for case in missing[first::processes] if case.launch is not None and case not in _traced)
        if (culprit := next(users, None)) is not None:
            _traced[culprit] = _unexplained("the process that imported its file ended early, or did not answer")
    if any(case.launch is not None and case not in _traced for case in missing):
        trace_together(missing, done)


def _program(case: Case) -> object:
    """The parameters that decide the machine code of a case, or of a kernel of the user's the case without sizes."""
    from smembench.kernels import registry
    from smembench.toolchains.kept_code import variant

    if case.launch is not None:
        return replace(case, m=1, n=1, k=None)
    return variant(case, registry.kernel_of(case).build(case), "")


def _lines(reading: int) -> Iterator[bytes]:
    """Lines of a pipe, up to its end or a long silence."""
    begun = b""
    while select([reading], [], [], _SILENCE_SECONDS)[0] and (more := os.read(reading, _PIPE_BYTES)):
        *lines, begun = (begun + more).split(b"\n")
        yield from lines


def predictor(cases: Sequence[Case]) -> Predict:
    """Trace these cases and return ``predict``: see ``store.load``."""
    trace_together(cases, unseen)
    return predict


def _start(cases: Sequence[Case], output: int) -> Popen[bytes]:
    """Start a process that traces cases and prints a line of JSON per case; several share the pipe ``output``."""
    process: Popen[bytes] = Popen(
        child_command("smembench.explain.prediction"),
        stdin=PIPE,
        stdout=output,
        stderr=DEVNULL,
        start_new_session=True,  # Ctrl-C is the parent's to handle
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as given:
        given.write(_CASES.dump_json(list(cases)))
    return process


def main() -> None:
    """Trace the cases on standard input."""
    gc.set_threshold(1_000_000)  # as in smembench.__main__
    answers = os.dup(1)
    os.dup2(2, 1)  # what a file of the user's prints when it is imported, by whatever means, is no answer
    for case in _CASES.validate_json(sys.stdin.read()):
        # In one write, and shorter than PIPE_BUF: lines of several processes do not mix.
        os.write(answers, _TRACED.dump_json((case, _figures(case))) + b"\n")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _key(case: Case) -> Case:
    """The representative of all cases with the same trace: device, cache, inputs and check do not matter."""
    launch = case.launch
    if launch is not None:
        launch = replace(launch, outputs=(), restored=(), resets=(), scratch=(), check=UNCHECKED, rtol=None)
        case = replace(case, kernel="", launch=replace(launch, bytes=1, flops=0, saved_bytes=0))
    return replace(case, device="cuda:0", cache="warm", inputs=UNIFORM)


def _figures(case: Case) -> Figures | None:
    """Figures from a trace; None for a kernel that cannot be traced, which is timed nevertheless."""
    from smembench.explain.costs import Costs, mean

    explained: Costs
    try:
        if case.launch is not None:
            from smembench.explain.any_kernel import explain_launch

            explained = explain_launch(case.launch)
        elif not has_source(case):
            return None
        else:
            from smembench.explain.analysis import explain  # imports Numba, which a run on the CPU has no use for here

            explained = explain(case, quick=True)
    except Exception as error:
        return _unexplained(one_line(error))
    predicted = Prediction(
        load_conflict=explained.degree("load"),
        store_conflict=explained.degree("store"),
        load_sectors=explained.sectors("load"),
        store_sectors=explained.sectors("store"),
        constant_addresses=mean((access.addresses, access.requests) for access in explained.constant),
        load_line=explained.conflict_line("load"),
        store_line=explained.conflict_line("store"),
    )
    return Figures(
        predicted,
        explained.threads,
        explained.shared_bytes,
        sum(access.sectors for access in explained.traffic),
        sum(access.of_all for access in explained.shared),
    )


def has_source(case: Case) -> bool:
    """True if a case's kernel is one of Numba's, which can be traced."""
    from smembench.kernels import registry
    from smembench.kernels.program import NumbaKernel

    return isinstance(registry.kernel_of(case).build(case), NumbaKernel)


def _unexplained(why: str) -> Figures:
    return Figures(Prediction(unexplained=f"not explained: {why}"), 0, 0)


if __name__ == "__main__":
    main()
