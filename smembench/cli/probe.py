"""``smembench probe``: the data sheet of a GPU's shared memory."""

from __future__ import annotations

from pathlib import Path

from smembench.cli.options import Outputs
from smembench.cli.output import opened
from smembench.cli.signature import argument, flag, option, takes
from smembench.model.errors import SmembenchError
from smembench.model.text import number_of
from smembench.studies.probe import FAMILIES

_HELP = "; ".join(f"{name}: {what}" for name, what in FAMILIES.items()) + ". (default: all)"


@takes(outputs=Outputs)
def probe(
    families: str | None = argument("FAMILY,…", _HELP),
    *,
    device: str = option("NAME", "auto, cuda, cuda:1.", default="auto"),
    run: Path | None = option("FILE", "Show a sheet stored with --export FILE.json; measure nothing."),
    full: bool = flag("Show every figure, how it was measured, and where the published one is from."),
    processes: int = option("N", "Measure in N processes; intervals contain what differs between.", min=1, default=3),
    outputs: Outputs,
) -> None:
    """Measure the data sheet of this GPU's shared memory.

    Each figure has its 95 % interval, and a published value if there is one. Without FAMILY it shows the leading
    figures of each. Files in CSV and JSON always have every figure with its method. Unsupported and failed probes are
    listed. Exit code 1: something failed.

    Examples:

      smembench probe
      smembench probe --full
      smembench probe latency,conflicts
      smembench probe --export sheet.json
      smembench probe bandwidth --run sheet.json --export -.md
    """
    from smembench.model.measurement import Status
    from smembench.studies.probe.sheet import chosen, read, repeated
    from smembench.views.console import notes, say
    from smembench.views.probe import digest, result, sections

    target = opened(outputs)
    wanted = chosen(families) if families else list(FAMILIES)
    if run is not None:
        sheet = read(run).only(wanted) if families else read(run)
    else:
        sheet = repeated(device, wanted, processes, lambda figure: say(notes, f"{figure.family}: {figure.name}"))
    shown = sections(sheet, methods=full) if full or families else digest(sheet)
    target.show(result(sheet, shown))
    if failed := [figure for figure in sheet.figures if figure.status not in (Status.OK, Status.SKIPPED)]:
        first = f"{failed[0].family}: {failed[0].name}: {failed[0].reason}"
        raise SmembenchError(f"{len(failed)} of {number_of(len(sheet.figures), 'figure')} failed, the first {first}")
