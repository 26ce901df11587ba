"""``smembench baseline``: the run that later ones are compared with."""

from __future__ import annotations

from pathlib import Path

import typer

from smembench.cli.options import Outputs, help_alone
from smembench.cli.output import only_json, opened
from smembench.cli.signature import argument, option, takes

app = typer.Typer(help="Pin the run that later runs of its config are compared with.", invoke_without_command=True)
app.callback()(help_alone)

_ROOT = argument("DIR", "The folder that holds the runs.", default=Path("results"))


@app.command("set")
def set_(folder: Path = argument("DIR", "A complete run's folder.", default=...)) -> None:
    """Pin a run: `run --compare-to` compares with it, and --keep never removes it.

    baseline.json beside the run names one run per config, so the results folder can be moved.

    Examples:

      smembench baseline set results/20260101T020000Z-nightly
    """
    from smembench.store.load import named
    from smembench.studies.baseline import BASELINE, pin
    from smembench.views.console import say, stderr

    run = named(folder)
    name = pin(run)
    path = run.resolve()
    say(stderr, f"{path.name} is now the baseline of {name} ({path.parent / BASELINE})")


@app.command()
@takes(outputs=Outputs)
def show(root: Path = _ROOT, *, outputs: Outputs) -> None:
    """List the pinned runs of a folder, one per line: config and run.

    Examples:

      smembench baseline show results
    """
    from smembench.model.text import visible
    from smembench.store.load import root_of
    from smembench.studies.baseline import baselines, pin_command
    from smembench.views.console import say, stderr

    target = opened(outputs, but=only_json("pinned runs are lines, not tables; give .json"))
    root = root_of(root)
    pinned = baselines(root)
    records = [{"config": name, "run": str(folder), "exists": folder.is_dir()} for name, folder in pinned.items()]
    lines = [
        "\t".join([visible(name), visible(str(folder)), *([] if folder.is_dir() else ["no longer exists"])])
        for name, folder in sorted(pinned.items())
    ]
    target.show_lines(lines, pinned=records)
    if not pinned:
        say(stderr, f"{root}: no baseline; pin one with: {pin_command(root)}")


@app.command()
def clear(root: Path = _ROOT, config: str | None = option("NAME", "Only this config's. (default: all)")) -> None:
    """Unpin runs; the runs themselves stay.

    Examples:

      smembench baseline clear results
      smembench baseline clear results --config nightly
    """
    from smembench.store.load import root_of
    from smembench.studies.baseline import unpin
    from smembench.views.console import say, stderr

    root = root_of(root)
    gone = unpin(root, config)
    outcome = f"no longer pinned: {', '.join(gone)}" if gone else "nothing was pinned"
    say(stderr, f"{root}: {outcome}")
