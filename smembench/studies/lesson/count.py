"""A lesson: a kernel with a mistake and the right one, run many times, with their wrong results counted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from smembench.devices.select import AUTO, CPU, canonical
from smembench.kernels.registry import EXTRA_KERNELS
from smembench.model.case import Case
from smembench.model.errors import SmembenchError, UsageError
from smembench.model.measurement import Status
from smembench.run import worker as workers
from smembench.run.axes import unknown
from smembench.run.config import from_flags
from smembench.run.plan import plan
from smembench.run.session import locked
from smembench.run.trial import Request
from smembench.studies.lesson import LESSONS

_KERNELS = ("transposeSmem", "transposeSmemNoBarrier")


@dataclass(frozen=True, slots=True)
class Count:
    """A case, and how many of its runs gave a wrong result."""

    case: Case
    wrong: int
    runs: int


def count(
    lesson: str, *, runs: int = 100, n: int = 1024, block: str = "32x32", device: str = "cuda"
) -> Iterator[Count]:
    """Run each kernel of a lesson many times, in each of the blocks.

    Raises:
        UsageError: for an unknown lesson, an invalid size or block, and a device that is not a GPU.
        DeviceUnavailable: for a GPU that is missing or in use.
        SmembenchError: for a run that fails.
    """
    if lesson not in LESSONS:
        raise UsageError(f"lesson {lesson!r}: {unknown(lesson, list(LESSONS), 'lesson')}")
    where = canonical(device)
    if where in (AUTO, CPU):
        raise UsageError(f"--device {device}: lessons need a GPU; write cuda or cuda:1")
    # The worker finds the kernel like any file of a user's.
    os.environ[EXTRA_KERNELS] = str(Path(__file__).with_name(f"{lesson}.py"))
    sweep = {"problem": "transpose", "kernel": _KERNELS, "n": n, "block": block, "device": where}
    config = from_flags({"sweep": [sweep]})
    with locked([where]), closing(workers.Worker([where])) as worker:
        planned = plan(config, worker.limits, {where: where})
        for case in (item.case for item in planned if item.case.kernel in _KERNELS):
            wrong = 0
            for run in range(runs):
                # A new seed each time: leftovers of the previous run must not pass for results.
                request = Request(case, run, 1, 0.0, 1.0, 0.0, seed=run)
                try:
                    trial = worker.run(request, timeout=60.0)
                except workers.WorkerFailed as error:
                    raise SmembenchError(f"{case.kernel} {case.block}, run {run + 1}: {error}") from None
                wrong += trial.status is Status.WRONG_RESULT
            yield Count(case, wrong, runs)
