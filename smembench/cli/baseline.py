"""``smembench baseline``: the run that later ones are held against."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="The run that later ones of its config are held against, pinned beside it.", no_args_is_help=True
)

_Root = Annotated[Path, typer.Argument(metavar="DIR", help="The folder runs are in.")]


@app.command("set")
def set_(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A complete run's folder.")]) -> None:
    """Pin a run: run --compare-to compares with it, and --keep never removes it.

    It is noted in baseline.json beside the run, one for each config, by name: the results folder can move.

    Examples:

      smembench baseline set results/20260101T020000Z-nightly
    """
    from smembench.studies.baseline import BASELINE, pin

    name = pin(folder)
    typer.echo(
        f"{folder.resolve().name} is the baseline of {name} now ({folder.resolve().parent / BASELINE})", err=True
    )


@app.command()
def show(root: _Root = Path("results")) -> None:
    """The pinned runs of a folder, one a line: config and run.

    Examples:

      smembench baseline show results
    """
    from smembench.studies.baseline import baselines

    pinned = baselines(root)
    for name, folder in sorted(pinned.items()):
        typer.echo(f"{name}\t{folder}" + ("" if folder.is_dir() else "\tis not there any more"))
    if not pinned:
        typer.echo(f"{root}: no baseline; pin one with: smembench baseline set {root}/<run>", err=True)


@app.command()
def clear(
    root: _Root = Path("results"),
    config: Annotated[
        str | None, typer.Option("--config", metavar="NAME", help="Only this config's. (default: all)")
    ] = None,
) -> None:
    """Forget what is pinned; the runs stay.

    Examples:

      smembench baseline clear results

      smembench baseline clear results --config nightly
    """
    from smembench.studies.baseline import unpin

    gone = unpin(root, config)
    said = f"no longer pinned: {', '.join(gone)}" if gone else "nothing was pinned"
    typer.echo(f"{root}: {said}", err=True)
