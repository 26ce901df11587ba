"""``smembench explain``: why a kernel takes as long as it does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.cli.options import SIZE, Json, complete_kernel, one_of
from smembench.cli.output import print_json, show
from smembench.model.errors import SmembenchError, UsageError

if TYPE_CHECKING:
    from smembench.explain.costs import Costs
    from smembench.model.case import Case


def explain(
    kernel: Annotated[
        str,
        typer.Argument(
            metavar="KERNEL",
            help="CUDA kernels, such as transposeSmem; several with --measure. Or any Numba kernel: path.py:function.",
            autocompletion=complete_kernel,
        ),
    ],
    block: Annotated[
        str | None,
        typer.Option(
            metavar="XxY,…",
            help="Block dimensions in threads; several with --measure. (default: 32x32 or the kernel's)",
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(metavar="XxYxZ", help="With path.py:function: blocks of the grid, in 1 to 3 dimensions."),
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARG",
            help="With path.py:function: an argument, in the kernel's order: float32[4096,4096], 1024, 0.5, or x.npy "
            "for an array with its data.",
        ),
    ] = None,
    shared_bytes: Annotated[
        int | None,
        typer.Option(min=0, metavar="BYTES", help="With path.py:function: dynamic shared memory of the launch."),
    ] = None,
    dtype: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…", help="Element types; several with --measure. (default: as the kernel's command measures)"
        ),
    ] = None,
    pad_width: Annotated[
        str, typer.Option(metavar="N,…", help="Extra columns of a padded tile; several with --measure.")
    ] = "1",
    n: Annotated[
        int | None,
        typer.Option(
            "--n",
            "-n",
            parser=SIZE,
            metavar="N",
            help="Side of the matrices, or elements. (default: as the kernel's command measures)",
        ),
    ] = None,
    m: Annotated[
        int | None, typer.Option("--m", parser=SIZE, metavar="N", help="Rows of A and C. (default: n)")
    ] = None,
    k: Annotated[
        int | None, typer.Option("--k", parser=SIZE, metavar="N", help="Columns of A and rows of B. (default: n)")
    ] = None,
    nx: Annotated[
        int | None, typer.Option("--nx", parser=SIZE, metavar="N", help="Columns of a transpose's input.")
    ] = None,
    ny: Annotated[
        int | None, typer.Option("--ny", parser=SIZE, metavar="N", help="Rows of a transpose's input.")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(parser=SIZE, metavar="N", help="Elements between rows (matmul) or lanes (strided).")
    ] = None,
    b_layout: Annotated[
        str | None,
        typer.Option("--b-layout", metavar="NAME", help="How a product's second matrix lies in memory: rows, columns."),
    ] = None,
    capability: Annotated[
        str | None,
        typer.Option(
            "--cc",
            metavar="X.Y",
            help="Compute capability, for registers and occupancy. (default: of --run or of the GPU here, else 9.0)",
        ),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A stored run: explain for its GPU. (default: the GPU here)")
    ] = None,
    best_pad: Annotated[
        bool, typer.Option("--best-pad", help="Find the smallest pad without conflicts of loads or stores.")
    ] = False,
    best_swizzle: Annotated[
        bool, typer.Option("--best-swizzle", help="Find the XOR of columns with the fewest conflicts, and the pad.")
    ] = False,
    row: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="With --best-swizzle: elements per row of shared arrays with one dimension."
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Compare with the hardware's counters; needs a GPU and ncu.")
    ] = False,
    csv: Annotated[
        Path | None, typer.Option(metavar="PATH", help="With --measure: also write the comparison as CSV.")
    ] = None,
    json: Json = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a page that steps through wavefronts and pads."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing HTML file.")] = False,
) -> None:
    """Explain a kernel from a trace, without a GPU: bank conflicts, coalescing, occupancy, roofs.

    The trace runs the timed function itself, on addresses instead of data. For each access in the source it gives the
    wavefronts per request in shared memory (n times the ideal is an n-way conflict) or the 32-byte sectors per request
    in global memory. Tiles that the TMA copies and that tensor cores read (wgmma) have a table of their own. Occupancy
    counts registers if a compiler is installed. The roofs are those of memory, of L1 and shared memory, and of
    arithmetic.

    Mistakes that the trace shows are named first, and the exit code is 1: an index outside an array, two threads that
    access a word of shared memory, one of them storing, with no barrier between, a barrier that not all threads reach,
    and a load of shared memory that nothing stored.

    A kernel in a file of your own is traced as it stands, with the arguments of a launch. The file is imported. What
    depends on data that was not given is named; give an array's data as a .npy file.

    Examples:

      smembench explain transposeSmem --block 32x32
      smembench explain mine.py:kernel --grid 128x128 --block 32x8 --arg float32[4096,4096] --arg indices.npy --arg 1024
      smembench explain transposeSmemPad --block 16x16 --dtype float64 --best-pad
      smembench explain transposeSmem --block 16x16 --best-swizzle
      smembench explain tiled --run results/reference/20261123T134710Z-documents
      smembench explain tiled --m 1000 --n 520 --k 4096
      smembench explain naive --stride 5000 --json
      smembench explain transposeSmemPad --html banks.html
      smembench explain transposeSmem,transposeSmemPad --block 32x32,16x16 --pad-width 1,2 --measure
    """
    from smembench.studies.explain_file import is_in_file

    sizes = {"n": n, "m": m, "k": k, "nx": nx, "ny": ny}
    given: dict[str, object] = {f"--{name}": size for name, size in sizes.items()}
    given |= {"--dtype": dtype, "--stride": stride, "--run": run, "--row": row, "--csv": csv, "--html": html}
    given |= {"--best-pad": best_pad, "--best-swizzle": best_swizzle, "--measure": measure, "--force": force}
    given |= {"--pad-width": pad_width != "1", "--b-layout": b_layout}
    if is_in_file(kernel):
        if wrong := [option for option, value in given.items() if value]:
            raise UsageError(f"{wrong[0]}: goes with the package's kernels, not with a kernel in a file")
        if grid is None or block is None:
            raise UsageError(f"{kernel}: give --grid and --block, such as --grid 128x128 --block 32x8")
        _in_file(kernel, (grid, block), arg or [], shared_bytes or 0, capability=capability, json=json)
        return
    of_file = {"--grid": grid, "--arg": arg, "--shared-bytes": shared_bytes}
    if wrong := [option for option, value in of_file.items() if value is not None]:
        raise UsageError(f"{wrong[0]}: goes with a kernel in a file, named path.py:function")

    from smembench.explain.analysis import best_pad as search_pad
    from smembench.explain.best_layout import best_layouts
    from smembench.explain.record import to_dict
    from smembench.kernels import registry
    from smembench.studies.explain import cases, explained, measured, target
    from smembench.views.console import say, stderr, stdout
    from smembench.views.explain import pad_records, pads, print_explanation
    from smembench.views.explain_layouts import layout_records, layouts, verdict_records

    one_of(measure=measure, best_pad=best_pad, best_swizzle=best_swizzle, html=html is not None)
    if row is not None and not best_swizzle:
        raise UsageError(f"--row {row}: goes with --best-swizzle")
    one_of(json=json, html=html is not None)
    if csv is not None and not measure:
        raise UsageError(f"--csv {csv}: is written with --measure; use --json for the explanation itself")
    device, capability = target(run, capability)
    multiprocessors = device.sm_count if device else None
    found = cases(
        kernel, blocks=block, dtypes=dtype, pads=pad_width, stride=stride, b_layout=b_layout, device=device, **sizes
    )
    for mistake in registry.mistakes():
        say(stderr, mistake)
    if measure:
        _measure(found, capability, multiprocessors, csv, json=json)
        return
    (case, *more) = found
    if more:
        raise UsageError(f"{len(found)} cases: give one; only --measure takes several")
    heading = f"{case.kernel} · block {case.block} · {case.dtype}"
    if best_pad:
        best, tried = search_pad(case)
        table = pads(tried, best, heading)
        show([table], json=json, case_id=case.id, best=best, pads=pad_records(tried))
        return
    if best_swizzle:
        by_array = best_layouts(case, row)
        tables, records = layouts(by_array, heading), layout_records(by_array)
        show(tables, json=json, case_id=case.id, layouts=records, verdicts=verdict_records(by_array))
        return
    timed = measured(case, run, device) if run is not None and device is not None else None
    if html is not None:
        from smembench.report.files import check_extra
        from smembench.store.files import Output

        page_file = Output(html, force=force, what="--html")
        check_extra("explain --html", "jinja2")
        from smembench.report.explanation import explanation_page

        page_file.write(explanation_page(explained(case, capability, multiprocessors), capability, device, timed))
        say(stderr, f"wrote {html}")
        return
    said = explained(case, capability, multiprocessors)
    if json:
        print_json(**to_dict(said, capability, device), measured_ms=timed.elapsed_ms if timed else None)
    else:
        print_explanation(stdout, said, capability, device, timed)
    _fail_on_mistakes(said)


def _in_file(
    kernel: str, sizes: tuple[str, str], texts: Sequence[str], shared_bytes: int, *, capability: str | None, json: bool
) -> None:
    from smembench.explain.arguments import dimensions, parsed
    from smembench.explain.foreign import explain_function
    from smembench.explain.record import costs_dict
    from smembench.studies.explain import target
    from smembench.studies.explain_file import function_in
    from smembench.views.console import stdout
    from smembench.views.explain import print_explanation

    grid, block = (dimensions(text, name) for text, name in zip(sizes, ("--grid", "--block"), strict=True))
    arguments = [parsed(text) for text in texts]
    found = explain_function(
        function_in(kernel),
        grid=grid,
        block=block,
        arguments=arguments,
        shared_bytes=shared_bytes,
        capability=target(capability=capability)[1],
    )
    if json:
        print_json(title=found.title, **costs_dict(found))
    else:
        print_explanation(stdout, found)
    _fail_on_mistakes(found)


def _fail_on_mistakes(found: Costs) -> None:
    from smembench.views.console import say, stderr

    if found.trace.mistakes:
        say(stderr, f"mistakes of the kernel: {len(found.trace.mistakes)}")
        raise typer.Exit(1)


def _measure(
    cases: Sequence[Case], capability: str | None, multiprocessors: int | None, csv: Path | None, *, json: bool
) -> None:
    from smembench.model.text import number_of
    from smembench.store.files import Output
    from smembench.studies.explain import counted
    from smembench.views.explain import comparison, counter_records
    from smembench.views.records import csv as as_csv

    output = Output(csv) if csv is not None else None
    found = counted(cases, capability, multiprocessors)
    table = comparison(found, f"Predicted, and counted by the hardware: {number_of(len(cases), 'case')}")
    show([table], json=json, figures=counter_records(found))
    if output is not None:
        output.write(as_csv(counter_records(found)))
    if others := sum(item.agrees is False for item in found):
        raise SmembenchError(f"{others} of {number_of(len(found), 'prediction')} differ from the hardware's counters")
