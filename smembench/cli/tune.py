"""``smembench tune``: the best kernel, block and pad of this device."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smembench.cli import options
from smembench.cli.options import Sampling, takes
from smembench.model.errors import UsageError

if TYPE_CHECKING:
    from smembench.model.case import Case
    from smembench.model.measurement import Measurement
    from smembench.studies.tune import Search

_FINAL_ROUNDS = 10
"""Rounds of the finalists against each other, unless --rounds says otherwise."""


@takes(sampling=Sampling)
def tune(
    problem: Annotated[str, typer.Argument(metavar="transpose|matmul", help="What to tune.")],
    *,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Side of the square matrices. (default: the problem's)")
    ] = None,
    dtype: Annotated[str, typer.Option("--dtype", metavar="NAME", help="Element type.")] = "float32",
    kernel: options.Kernels = None,
    device: Annotated[str, typer.Option("--device", metavar="NAME", help="auto, cuda, cuda:1, cpu.")] = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="BEST.toml", help="Write the best case for smembench run.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the candidates and stop.")] = False,
    sampling: Sampling,
) -> None:
    """Search the fastest kernel, block and pad of a problem on this device.

    Candidates are pruned by the limits of a block and by the traffic that the model predicts, measured quickly, and
    ranked by the lower end of the median's interval; the finalists are measured against each other in one interleaved
    run.

    Examples:

      smembench tune transpose

      smembench tune matmul --n 2048 --dtype float64 -o best.toml

      smembench tune transpose --kernel transposeSmemPad --dry-run
    """
    from smembench.cli.progress import progress
    from smembench.devices.select import resolve
    from smembench.kernels import registry
    from smembench.kernels.problems import PROBLEMS
    from smembench.model.case import Case
    from smembench.run.axes import parse_names
    from smembench.run.config import PRESETS
    from smembench.store.csv_files import check_writable, write_whole
    from smembench.studies.ladder import problems
    from smembench.studies.tune import finalists, predicted_cost, search, to_toml
    from smembench.views.console import stderr, stdout
    from smembench.views.table import draw
    from smembench.views.tune import finals

    (problem,) = parse_names(problem, problems(), name="tune", what="problem with kernels to choose from")[:1]
    contract = PROBLEMS[problem]
    (dtype,) = parse_names(dtype, contract.dtypes, name="--dtype", what=f"element type for {problem}")[:1]
    if output is not None:
        check_writable(output, force=force, what="--output")
    (where,), note = resolve([device])
    if note:
        stderr.print(note, soft_wrap=True, markup=False)
    known = [name for name in registry.names(problem) if registry.find(problem, name, where.partition(":")[0])]
    names = parse_names(kernel, known, name="--kernel", what=f"{problem} kernel on {where}") if kernel else known
    shape = contract.shapes({} if n is None else {"n": (n,)})[0]
    (parameters, *_) = contract.combinations({})
    base = Case(problem, "", where, dtype, shape.m, shape.n, shape.k, parameters=parameters)
    with progress() as begin:
        found = search(base, names, predicted_cost, begin)
    if not found.cases:
        raise UsageError(f"--kernel {kernel}: none of them is a candidate for the fastest {problem}")
    if dry_run:
        _print(found)
        return
    stderr.print(_counts(found), soft_wrap=True, markup=False)
    first = _measured(found.cases, {**PRESETS["quick"], **sampling.config()})
    # The ceiling is measured in every run and is no candidate.
    chosen = finalists(measurement for measurement in first if measurement.case in found.cases)
    if not chosen:
        raise UsageError(f"no candidate could be measured: {first[-1].reason}")
    last = _measured(chosen, {"rounds": _FINAL_ROUNDS, **sampling.config()})
    section, best = finals(last, chosen, f"{contract.title} {base.size} {dtype} on {where}: the finalists")
    draw(stdout, [section])
    if output is not None:
        write_whole(output, to_toml(best, [section.heading, section.sentence]))
        stderr.print(f"wrote {output}", soft_wrap=True, markup=False)


def _counts(found: Search) -> str:
    return (
        f"{len(found.cases)} candidates; {found.over_limits} were over a block's limits, "
        f"{found.predicted_slow} predicted to need {found.allowed:g} times the traffic"
    )


def _print(found: Search) -> None:
    for case in found.cases:
        typer.echo(case.id)
    typer.echo(f"{_counts(found)}; nothing was measured", err=True)


def _measured(cases: Sequence[Case], sampling: dict[str, Any]) -> list[Measurement]:
    """Measure these cases in one interleaved run."""
    from smembench.cli.progress import progress
    from smembench.run.config import from_stored
    from smembench.run.session import open_session
    from smembench.studies.tune import as_sweep

    config = from_stored({"name": "tune", **sampling, "sweep": [as_sweep(case) for case in cases]})
    with open_session(config) as session, progress() as begin:
        return session.measurements(list(session.run(begin=begin)))
