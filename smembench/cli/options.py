"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

_AXIS = "AXIS"


def _complete_kernel(context: typer.Context, incomplete: str) -> list[str]:
    from smembench.kernels import registry
    from smembench.problems import PROBLEMS

    problems = [context.info_name] if context.info_name in PROBLEMS else list(PROBLEMS)
    chosen, comma, start = incomplete.rpartition(",")
    names = [name for problem in problems for name in registry.names(str(problem))]
    return [f"{chosen}{comma}{name}" for name in names if name.lower().startswith(start.lower())]


Kernels = Annotated[
    str | None,
    typer.Option("--kernel", help="Kernels by name, comma-separated.", autocompletion=_complete_kernel),
]
Blocks = Annotated[
    str | None,
    typer.Option("--block", metavar="XxY,…", help="Block dimensions in threads. (default: 32x32,16x16)"),
]
Dtypes = Annotated[str | None, typer.Option("--dtype", help="Element types. (default: float32)")]
Devices = Annotated[
    str | None,
    typer.Option("--device", help="auto, cuda, cuda:1 or cpu. (default: auto: a GPU if one is usable)"),
]
Cache = Annotated[
    str | None,
    typer.Option(
        "--cache",
        help="warm (as the launch before left it), cold (flushed before each) or both. (default: warm)",
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option("--csv", metavar="PATH|-", help="Write the cases as CSV; - is stdout, and tables go to stderr."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing CSV.")]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of the random inputs. (default: a new one each run)")
]
Samples = Annotated[int | None, typer.Option("--samples", help="Samples a case. (default: 30)")]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        "--max-seconds",
        help="Sampling time a case; CPU cases that cannot make 3 samples in it are skipped. (default: 30)",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the cases and stop.")]


def given(**values: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in values.items() if value is not None}
