"""``smembench tune``: the fastest kernel, block and pad on this device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from smembench.cli import options
from smembench.cli.explain_options import Sizes
from smembench.cli.options import Outputs, Sampling
from smembench.cli.output import opened, print_json
from smembench.cli.signature import flag, option, takes

if TYPE_CHECKING:
    from smembench.studies.tune import Search


@takes(sizes=Sizes, sampling=Sampling, outputs=Outputs)
def tune(
    problem: str = options.PROBLEM,
    *,
    n: int | None = option("N", "Side, or elements. (default: the problem's)", "-n", parser=options.SIZE),
    dtype: str = option("NAME", "Element type.", default="float32"),
    kernel: str | None = options.KERNELS,
    device: str = option("NAME", "auto, cuda, cuda:1, cpu.", default="auto"),
    output: Path | None = option("BEST.toml", "Write the best case for smembench run.", "-o"),
    objective: Literal["time", "energy"] = option(
        None, "What the best is least in; energy is per launch, under a load of 10 s. (default: time)", default="time"
    ),
    dry_run: bool = flag("Print the candidates and stop."),
    sizes: Sizes,
    sampling: Sampling,
    outputs: Outputs,
) -> None:
    """Find the fastest kernel, block and pad for this device.

    Candidates that exceed a block's limits or have too much predicted memory traffic are left out. The others are
    measured quickly and ranked by the lower end of the median's 95 % interval; the finalists are then measured in one
    interleaved run. With --objective energy these fastest are also launched back to back, and the best takes the least
    energy per launch by NVML's counter.

    Examples:

      smembench tune transpose
      smembench tune matmul --n 2048 --dtype float64 --output best.toml
      smembench tune matmul --m 16 --n 8192 --k 8192 --dtype bfloat16
      smembench tune transpose --kernel transposeSmemPad --dry-run
    """
    from smembench.devices.select import check_usable
    from smembench.run.config import from_flags
    from smembench.studies.ladder.climb import problems
    from smembench.studies.tune import candidates, check_objective
    from smembench.views.console import notes, say
    from smembench.views.run import watch
    from smembench.views.tune import counts

    from_flags({**sampling.config(), "sweep": [{"problem": problems()[0]}]})  # a wrong value is told before the search
    check_objective(objective, device)
    find = partial(
        candidates, problem, {"n": n, **asdict(sizes)}, dtype=dtype, kernel=kernel, device=device, watch=watch()
    )
    if not dry_run:
        check_usable(device)
        find_fastest(find, sampling, outputs, output, objective=objective)
        return
    target, search = opened(outputs), find()
    if target.printed == "json":
        print_json(cases=[{"case_id": case.id} for case in search.cases])
    else:
        for case in search.cases:
            typer.echo(case.id)
    say(notes, f"{counts(search)}; nothing was measured")


def find_fastest(
    find: Callable[[], Search],
    sampling: Sampling,
    outputs: Outputs,
    output: Path | None = None,
    *,
    objective: str = "time",
) -> None:
    """Measure the candidates that ``find`` finds and then the finalists, show these, and write the best as a config.

    Raises:
        SmembenchError: for what ended the search; after Ctrl-C with the best so far.
    """
    from smembench.cli.measure import Interrupted
    from smembench.model.interrupts import deferred
    from smembench.run.narrowed import as_sweep, to_toml
    from smembench.store.files import Output
    from smembench.studies.tune import TuneInterrupted, tuned
    from smembench.views.run import watch
    from smembench.views.tune import counts, result

    best = Output(output, force=outputs.force, what="--output") if output is not None else None
    target = opened(outputs)
    watching, search = watch(), find()
    watching.note(counts(search))
    with deferred() as hold:  # what was measured is shown and written
        try:
            done = tuned(search, sampling.config(), watching, objective=objective)
        except TuneInterrupted as error:
            if error.so_far is not None:
                target.show(result(error.so_far, error.among))
            hold.take()  # a second Ctrl-C is the same one
            unwritten = f"; {output} was not written" if output is not None else ""
            raise Interrupted(f"{error}{unwritten}") from None
        table = result(done)
        target.show(table)
        if best is not None:
            (section,) = table.sections
            best.write(to_toml([as_sweep(done.best)], [section.heading, section.sentence]))
            watching.note(f"wrote {output}")
