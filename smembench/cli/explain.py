"""``smembench explain``: why a kernel takes the time it takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.cli import options
from smembench.errors import UsageError

if TYPE_CHECKING:
    from smembench.case import Case


def explain(
    kernel: Annotated[
        str, typer.Argument(metavar="KERNEL", help="CUDA kernels, such as transposeSmem; several with --measure.")
    ],
    block: Annotated[
        str | None,
        typer.Option(
            "--block",
            metavar="XxY,…",
            help="Block dimensions in threads; several with --measure. (default: 32x32 or the kernel's)",
        ),
    ] = None,
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="NAME,…", help="Element types; several with --measure.")
    ] = "float32",
    pad_width: Annotated[
        str, typer.Option("--pad-width", metavar="N,…", help="Extra columns of a padded tile; several with --measure.")
    ] = "1",
    n: Annotated[
        int, typer.Option("--n", min=1, help="Side of the matrices; its remainder by 8 elements counts.")
    ] = 4096,
    capability: Annotated[
        str | None, typer.Option("--cc", metavar="X.Y", help="Compute capability, for the occupancy.")
    ] = "9.0",
    best_pad: Annotated[
        bool, typer.Option("--best-pad", help="Search the smallest pad free of conflicts on both sides.")
    ] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Beside the hardware's counters; needs a GPU and ncu.")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="PATH", help="With --measure: write the comparison as CSV.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Explain a kernel from a trace of itself, without a GPU: bank conflicts, coalescing, occupancy.

    The function that is timed is run thread by thread on addresses alone. For each access in its source: wavefronts a
    request in shared memory, where n times the ideal is an n-way conflict, and 32-byte sectors a request in global
    memory. Occupancy counts threads and shared memory, not registers.

    Examples:

      smembench explain transposeSmem --block 32x32

      smembench explain transposeSmemPad --block 16x16 --dtype float64 --best-pad

      smembench explain tiled --json

      smembench explain transposeSmem,transposeSmemPad --block 32x32,16x16 --pad-width 1,2 --measure
    """
    from json import dumps

    from smembench.explain import analysis
    from smembench.views.console import plain, stdout
    from smembench.views.explanation import explanation, pads, picture
    from smembench.views.table import draw

    chosen = [name for name, given in (("--measure", measure), ("--best-pad", best_pad), ("--json", json)) if given]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)}: give one of them")
    if csv is not None and not measure:
        raise UsageError(f"--csv {csv}: is written with --measure; use --json for the explanation itself")
    cases = options.cuda_cases(kernel, block, dtype, pad_width, n)
    if measure:
        _measure(cases, capability, csv)
        return
    (case, *more) = cases
    if more:
        raise UsageError(f"{len(cases)} cases: one at a time is explained, several only with --measure")
    if best_pad:
        best, tried = analysis.best_pad(case)
        draw(stdout, [pads(tried, best, f"{case.kernel} · block {case.block} · {case.dtype}")])
        return
    explained = analysis.explain(case, capability)
    if json:
        typer.echo(dumps(analysis.to_dict(explained), indent=2))
        return
    draw(stdout, explanation(explained))
    for line in picture(explained):
        line.plain = plain(stdout, line.plain)
        stdout.print(line, soft_wrap=True)


def _measure(cases: Sequence[Case], capability: str | None, csv: Path | None) -> None:
    from smembench.explain.counters import compare
    from smembench.session import locked
    from smembench.store.csv_files import check_writable, table_text, write_whole
    from smembench.views.console import stdout
    from smembench.views.explanation import COMPARISON_COLUMNS, comparison, comparison_records
    from smembench.views.table import draw

    if csv is not None:
        check_writable(csv, force=False)
    with locked({case.device for case in cases}):
        found = compare(cases, capability)
    draw(stdout, [comparison(found, f"Predicted from a trace, and counted by the hardware: {len(cases)} cases")])
    if csv is not None:
        write_whole(csv, table_text(COMPARISON_COLUMNS, comparison_records(found)))
    if any(item.agrees is False for item in found):
        raise typer.Exit(1)
