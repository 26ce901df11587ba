"""``smembench accept``: a change that is intended, and no longer reported."""

from __future__ import annotations

from pathlib import Path

import typer

from smembench.cli.options import Outputs
from smembench.cli.output import only_json, opened
from smembench.cli.signature import argument, flag, option, takes
from smembench.model.errors import UsageError


@takes(outputs=Outputs)
def accept(
    folder: Path = argument(
        "RUN|DIR", "A run's folder, or a folder of runs, for the newest of them.", default=Path("results")
    ),
    *,
    case: str | None = option("ID|GLOB", "The cases: an id, or a glob such as '*/tiled/*'."),
    all_: bool = flag("Every case of the run."),
    reason: str | None = option("TEXT", "Why the change is intended."),
    withdraw: bool = flag("Withdraw what was accepted with this --case, or --all of it."),
    outputs: Outputs,
) -> None:
    """Accept a change: its cases are compared with their new level.

    A slower case is reported every night, with exit code 3, until it is as fast as before or accepted. What is accepted
    is stored in accepted.json beside the runs, which `run --compare-to`, `compare last:N RUN` and `history` read. It
    applies to the devices of the run, and later changes are reported again. Without --case or --all, what is accepted
    is listed, one line each: run, case and reason.

    Examples:

      smembench accept results/last --case "*/transposeSmem/*" --reason "new driver"

      smembench accept results --all --reason "clocks are locked from now on"

      smembench accept results

      smembench accept results --withdraw --case "*/transposeSmem/*"
    """
    from smembench.store.load import named, root_of
    from smembench.studies import accept as study

    if case is not None and all_:
        raise UsageError(f"--case {case} and --all: give one of them")
    target = opened(outputs, but=only_json("accepted changes are lines, not tables; give .json"))
    pattern = "*" if all_ else case
    folder = named(folder)  # once: it warns of what it leaves out
    if withdraw:
        if reason is not None:
            raise UsageError("--reason: goes with --case or --all, not with --withdraw")
        if pattern is None:
            raise UsageError("--withdraw: give --case, as the list of what is accepted has it, or --all")
        _withdraw(folder, case)
    elif pattern is not None:
        if reason is None:
            raise UsageError("--reason is missing: say why the change is intended")
        run_id, cases = study.accept(folder, pattern, reason)
        some = cases[0] if len(cases) == 1 else f"{len(cases)} cases"
        typer.echo(f"accepted from {run_id} on: {some}", err=True)
    elif reason is not None:
        raise UsageError("--reason: give --case or --all with it")
    elif not study.accepted(root_of(folder)):
        typer.echo(f"{folder}: nothing is accepted", err=True)
    listed = study.accepted(root_of(folder))
    lines = [f"{one.run}\t{one.case}\t{one.reason}" for one in listed] if pattern is None else []
    target.show_lines(lines, accepted=[one.model_dump(mode="json") for one in listed])


def _withdraw(folder: Path, case: str | None) -> None:
    """Withdraw what was accepted with this --case, or everything.

    Raises:
        UsageError: if that is nothing.
    """
    from smembench.store.load import root_of
    from smembench.studies.accept import withdraw

    gone = withdraw(root_of(folder), case)
    if not gone:
        raise UsageError(f"{folder}: nothing is accepted" + ("" if case is None else f" with --case {case!r}"))
    for one in gone:
        typer.echo(f"no longer accepted: {one.case} from {one.run} on", err=True)
