"""``smembench lesson``: what a mistake does, seen by the verification."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from smembench.model.errors import SmembenchError, UsageError

LESSONS = {"barrier": "what a missing __syncthreads does to transposeSmem"}


def lesson(
    name: Annotated[str, typer.Argument(metavar="LESSON", help=", ".join(f"{k}: {v}" for k, v in LESSONS.items()))],
    runs: Annotated[int, typer.Option("--runs", min=1, help="How often each kernel is run and checked.")] = 100,
    n: Annotated[int, typer.Option("--n", min=1, help="Side of the matrix.")] = 1024,
    block: Annotated[str, typer.Option("--block", metavar="XxY,…", help="Block dimensions in threads.")] = "32x32",
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="cuda or cuda:1.")] = "cuda",
) -> None:
    """Run a kernel with a mistake many times and count how often the verification catches it. Needs a GPU.

    Examples:

      smembench lesson barrier

      smembench lesson barrier --runs 200 --block 32x32,32x1
    """
    from contextlib import closing
    from pathlib import Path

    import smembench.studies.lesson
    from smembench.devices.select import AUTO, CPU, canonical
    from smembench.kernels.registry import EXTRA_KERNELS
    from smembench.model.measurement import Status
    from smembench.run.axes import unknown
    from smembench.run.config import from_flags
    from smembench.run.plan import plan
    from smembench.run.session import locked
    from smembench.run.trial import Request
    from smembench.run.worker import Worker, WorkerFailed

    if name not in LESSONS:
        raise UsageError(f"lesson {name!r}: {unknown(name, list(LESSONS), 'lesson')}")
    where = canonical(device)
    if where in (AUTO, CPU):
        raise UsageError(f"--device {device}: lessons need a GPU; write cuda or cuda:1")
    # The worker finds the kernel as it finds any file of a user's.
    os.environ[EXTRA_KERNELS] = str(Path(smembench.studies.lesson.__file__).with_name(f"{name}.py"))
    names = ("transposeSmem", "transposeSmemNoBarrier")
    sweep = {"problem": "transpose", "kernel": names, "n": n, "block": block, "device": where}
    config = from_flags({"sweep": [sweep]})
    with locked([where]), closing(Worker([where])) as worker:
        planned = plan(config, worker.limits, {where: where})
        for case in (item.case for item in planned if item.case.kernel in names):
            wrong = 0
            for run in range(runs):
                # A fresh seed each time: leftovers of the run before must not pass for results.
                request = Request(case, run, 1, 0.0, 1.0, 0.0, seed=run)
                try:
                    trial = worker.run(request, timeout=60.0)
                except WorkerFailed as error:
                    raise SmembenchError(f"{case.kernel} {case.block}, run {run + 1}: {error}") from None
                wrong += trial.status is Status.WRONG_RESULT
            typer.echo(f"{case.kernel:<23} {case.block}: wrong in {wrong} of {runs} runs")
    typer.echo(
        "Without the barrier a warp may read a part of the tile that another has not written. Whether it does is a "
        "matter of timing: a right result proves nothing, and only the barrier makes it right every time."
    )
