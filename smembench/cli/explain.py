"""``smembench explain``: why a kernel takes the time it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smembench.cli import options
from smembench.model.errors import UsageError

if TYPE_CHECKING:
    from smembench.model.case import Case
    from smembench.model.device import DeviceInfo

_CAPABILITY = "9.0"


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
        str | None,
        typer.Option(
            "--dtype",
            metavar="NAME,…",
            help="Element types; several with --measure. (default: as the kernel's command measures)",
        ),
    ] = None,
    pad_width: Annotated[
        str, typer.Option("--pad-width", metavar="N,…", help="Extra columns of a padded tile; several with --measure.")
    ] = "1",
    n: Annotated[
        int | None,
        typer.Option(
            "--n", min=1, help="Side of the matrices, or elements. (default: as the kernel's command measures)"
        ),
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option(
            "--stride", min=1, metavar="N", help="Of a product: from row to row; of strided: from lane to lane."
        ),
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
        Path | None,
        typer.Option("--run", metavar="DIR", help="A stored run whose GPU's roofs are meant. (default: the GPU here)"),
    ] = None,
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
    """Explain a kernel from a trace of itself, without a GPU: bank conflicts, coalescing, occupancy, roofs.

    The function that is timed is run on addresses alone. For each access in its source: wavefronts a request in shared
    memory, where n times the ideal is an n-way conflict, and 32-byte sectors a request in global memory. Occupancy
    counts registers where a compiler is there. The roofs are those of memory, of L1 and shared memory, and of
    arithmetic.

    Examples:

      smembench explain transposeSmem --block 32x32

      smembench explain transposeSmemPad --block 16x16 --dtype float64 --best-pad

      smembench explain tiled --run results/reference/20261120T181658Z-documents

      smembench explain naive --stride 5000 --json

      smembench explain transposeSmem,transposeSmemPad --block 32x32,16x16 --pad-width 1,2 --measure
    """
    from json import dumps

    from smembench.explain import analysis
    from smembench.explain.record import to_dict
    from smembench.kernels.problems import PROBLEMS
    from smembench.toolchains.machine_code import machine_code
    from smembench.views.console import plain, stdout
    from smembench.views.explain import explanation, pads, picture
    from smembench.views.explain_roof import roof
    from smembench.views.table import draw

    chosen = [name for name, given in (("--measure", measure), ("--best-pad", best_pad), ("--json", json)) if given]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)}: give one of them")
    if csv is not None and not measure:
        raise UsageError(f"--csv {csv}: is written with --measure; use --json for the explanation itself")
    cases = options.cuda_cases(kernel, block, dtype, pad_width, n)
    if stride is not None:
        cases = [_strided(case, stride) for case in cases]
    device = _device(run, capability)
    cases = [PROBLEMS[case.problem].on_device(case, device.sm_count if device else None) for case in cases]
    capability = capability or _capability(device)
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
    explained = analysis.explain(case, capability, machine_code(case, capability))
    if json:
        typer.echo(dumps(to_dict(explained, capability, device), indent=2))
        return
    draw(stdout, [*explanation(explained), roof(explained, capability, device)])
    for line in picture(explained):
        line.plain = plain(stdout, line.plain)
        stdout.print(line, soft_wrap=True)


def _strided(case: Case, stride: int) -> Case:
    """The case with that stride.

    Raises:
        UsageError: for a kernel or a problem that has none, or not that one.
    """
    from smembench.kernels.problems import PROBLEMS
    from smembench.kernels.registry import kernel_of

    if not kernel_of(case).strided:
        raise UsageError(f"--stride {stride}: {case.kernel} has no stride; leave it out")
    strided = replace(case, stride=stride)
    if reason := PROBLEMS[case.problem].unsupported(strided):
        raise UsageError(f"--stride {stride}: {reason}")
    return strided


def _device(run: Path | None, capability: str | None) -> DeviceInfo | None:
    """The GPU whose roofs are meant: that of a stored run, or the one here; None with --cc, which names none.

    Raises:
        UsageError: for a run that cannot be read or has no GPU.
    """
    from smembench.model.device import DeviceInfo

    if run is None:
        from smembench.devices.cuda import gpu_info

        return None if capability else gpu_info(0)
    if capability:
        raise UsageError("--cc and --run: give one of them; the run's GPU has a compute capability")
    from smembench.studies.load import load

    devices = [DeviceInfo.from_dict(device) for device in load(run).run.get("devices", ())]
    gpus = [device for device in devices if device.kind == "cuda"]
    if not gpus:
        raise UsageError(f"--run {run}: its run.json names no GPU; give a run that was measured on one")
    return gpus[0]


def _capability(device: DeviceInfo | None) -> str | None:
    """That of the device, None where its limits are not known; without a device the default."""
    from smembench.explain.occupancy import CAPABILITIES

    if device is None:
        return _CAPABILITY
    return device.compute_capability if device.compute_capability in CAPABILITIES else None


def _measure(cases: Sequence[Case], capability: str | None, csv: Path | None) -> None:
    from smembench.explain.counters import compare
    from smembench.run.session import locked
    from smembench.store.csv_files import check_writable, table_text, write_whole
    from smembench.views.console import stdout
    from smembench.views.explain import COMPARISON_COLUMNS, comparison, comparison_records
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
