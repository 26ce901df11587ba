"""``smembench probe``: the data sheet of a GPU's shared memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smembench.cli.options import Outputs
from smembench.cli.output import opened
from smembench.cli.signature import takes
from smembench.model.errors import SmembenchError
from smembench.model.text import number_of
from smembench.studies.probe import FAMILIES

_HELP = "; ".join(f"{name}: {what}" for name, what in FAMILIES.items()) + ". (default: all)"


@takes(outputs=Outputs)
def probe(
    families: Annotated[str | None, typer.Argument(metavar="[FAMILY,…]", help=_HELP)] = None,
    *,
    device: Annotated[str, typer.Option(metavar="NAME", help="auto, cuda, cuda:1.")] = "auto",
    run: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Show a sheet stored with --export FILE.json; measure nothing.")
    ] = None,
    outputs: Outputs,
) -> None:
    """Measure the shared memory of this GPU: each figure with its method, its 95 % interval, and a published one.

    A line says what the device lacks and what failed. Exit code 1: something failed.

    Examples:

      smembench probe
      smembench probe latency,conflicts
      smembench probe --export sheet.json
      smembench probe bandwidth --run sheet.json --export -.md
    """
    from smembench.model.measurement import Status
    from smembench.studies.probe.sheet import chosen, measured, read
    from smembench.views.console import notes, say
    from smembench.views.probe import result

    target = opened(outputs)
    wanted = chosen(families) if families else list(FAMILIES)
    if run is not None:
        sheet = read(run).only(wanted) if families else read(run)
    else:
        sheet = measured(device, wanted, lambda figure: say(notes, f"{figure.family}: {figure.name}"))
    target.show(result(sheet))
    if failed := [figure for figure in sheet.figures if figure.status not in (Status.OK, Status.SKIPPED)]:
        said = f"{failed[0].family}: {failed[0].name}: {failed[0].reason}"
        raise SmembenchError(f"{len(failed)} of {number_of(len(sheet.figures), 'figure')} failed, the first {said}")
