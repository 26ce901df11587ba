"""``smembench lesson``: what a mistake in a kernel does, counted by verification."""

from __future__ import annotations

from typing import Annotated

import typer

from smembench.studies.lesson import LESSONS


def lesson(
    name: Annotated[str, typer.Argument(metavar="LESSON", help=", ".join(f"{k}: {v}" for k, v in LESSONS.items()))],
    runs: Annotated[int, typer.Option(min=1, help="How many times each kernel is run and checked.")] = 100,
    n: Annotated[int, typer.Option(min=1, help="Side of the matrix.")] = 1024,
    block: Annotated[str, typer.Option(metavar="XxY,…", help="Block dimensions in threads.")] = "32x32",
    device: Annotated[str, typer.Option(metavar="NAME", help="cuda or cuda:1.")] = "cuda",
) -> None:
    """Run a kernel with a mistake many times and count its wrong results. Needs a GPU.

    Examples:

      smembench lesson barrier
      smembench lesson barrier --runs 200 --block 32x32,32x1
    """
    from smembench.studies.lesson.count import count

    for found in count(name, runs=runs, n=n, block=block, device=device):
        case = found.case
        typer.echo(f"{case.kernel:<23} {case.block}: wrong in {found.wrong} of {found.runs} runs")
    typer.echo(
        "Without the barrier a warp may read a part of the tile that another warp has not written yet. Whether it does "
        "is a matter of timing: a right result proves nothing. Only the barrier makes it right every time."
    )
