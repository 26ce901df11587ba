"""``smembench tune``: the fastest kernel, block and pad on this device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smembench.cli import options
from smembench.cli.options import Sampling
from smembench.cli.output import print_json, show
from smembench.cli.signature import takes


@takes(sampling=Sampling)
def tune(
    problem: options.ProblemName,
    *,
    n: Annotated[
        int | None,
        typer.Option(
            "--n",
            "-n",
            parser=options.SIZE,
            metavar="N",
            help="Side, or elements. (default: the problem's)",
        ),
    ] = None,
    dtype: Annotated[str, typer.Option(metavar="NAME", help="Element type.")] = "float32",
    kernel: options.Kernels = None,
    device: Annotated[str, typer.Option(metavar="NAME", help="auto, cuda, cuda:1, cpu.")] = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="BEST.toml", help="Write the best case for smembench run.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the candidates and stop.")] = False,
    json: options.Json = False,
    sampling: Sampling,
) -> None:
    """Find the fastest kernel, block and pad for a problem on this device.

    Candidates that exceed a block's limits or have too much predicted memory traffic are left out. The others are
    measured quickly and ranked by the lower end of the median's 95 % interval; the finalists are then measured in one
    interleaved run.

    Examples:

      smembench tune transpose
      smembench tune matmul --n 2048 --dtype float64 -o best.toml
      smembench tune transpose --kernel transposeSmemPad --dry-run
    """
    from smembench.cli.measure import Interrupted
    from smembench.model.interrupts import held
    from smembench.run.config import from_flags
    from smembench.store.files import Output
    from smembench.studies.ladder.climb import problems
    from smembench.studies.tune import TuneInterrupted, candidates, to_toml, tuned
    from smembench.views.export import cases
    from smembench.views.run import watch
    from smembench.views.tune import counts, finals, ranked

    best = Output(output, force=force, what="--output") if output is not None else None
    watching = watch()
    from_flags({**sampling.config(), "sweep": [{"problem": problems()[0]}]})  # a wrong value is told before the search
    found = candidates(problem, n=n, dtype=dtype, kernel=kernel, device=device, watch=watching)
    if dry_run:
        if json:
            print_json(cases=[{"case_id": case.id} for case in found.cases])
        else:
            for case in found.cases:
                typer.echo(case.id)
        typer.echo(f"{counts(found)}; nothing was measured", err=True)
        return
    watching.note(counts(found))
    with held():  # what was measured is shown and written
        try:
            done = tuned(found, sampling.config(), watching)
        except TuneInterrupted as error:
            if error.so_far is not None:
                show([finals(error.so_far, error.among)], json=json, cases=cases(ranked(error.so_far)))
            unwritten = f"; {output} was not written" if output is not None else ""
            raise Interrupted(f"{error}{unwritten}") from None
        section = finals(done)
        show([section], json=json, cases=cases(ranked(done)))
        if best is not None:
            best.write(to_toml(done.best, [section.heading, section.sentence]))
            watching.note(f"wrote {output}")
