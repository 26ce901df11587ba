"""A data sheet: figures with the device and the versions that they were measured on, measured now or read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from smembench.devices.select import AUTO, CPU, canonical, resolve, uuid_of
from smembench.model.child import captured, child_command
from smembench.model.device import DeviceInfo
from smembench.model.errors import DeviceUnavailable, UsageError
from smembench.model.groups import grouped
from smembench.run.axes import split, unknown
from smembench.run.environment import versions
from smembench.run.session import locked
from smembench.store.files import there
from smembench.store.run import Run
from smembench.store.run_json import Moment, read_json
from smembench.studies.probe import FAMILIES, probe
from smembench.studies.probe.figure import Figure
from smembench.toolchains.settings import check_optimised

IN_RUN = "probe.json"
"""A data sheet of ``smembench probe --export`` in a run's folder, by its name."""


class Sheet(BaseModel):
    """Output of ``smembench probe --json``. The device has no UUID: a sheet is of a model, not of one GPU."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    schema_version: Literal[1] = 1
    measured_at_utc: Moment
    device: DeviceInfo
    versions: dict[str, str]
    processes: int = 1
    figures: list[Figure]

    def only(self, families: Collection[str]) -> Sheet:
        """The same with the figures of these families."""
        return self.model_copy(update={"figures": [figure for figure in self.figures if figure.family in families]})


def chosen(families: str) -> list[str]:
    """The families of a list separated by commas.

    Raises:
        UsageError: for an unknown one.
    """
    names = split(families)
    for name in names:
        if name not in FAMILIES:
            raise UsageError(f"{name!r}: {unknown(name, list(FAMILIES), 'family')}")
    return names


def measured(device: str, families: Iterable[str], seen: Callable[[Figure], None] = lambda figure: None) -> Sheet:
    """Measure a device; ``seen`` gets each figure at once.

    Raises:
        UsageError: for a device that is not a GPU.
        DeviceUnavailable: for a GPU that is missing or in use.
    """
    name = canonical(device)
    if name == CPU:
        raise UsageError(f"--device {device}: shared memory is a GPU's; write cuda or cuda:1, or --run FILE")
    name = "cuda:0" if name == AUTO else resolve(name)[0]
    uuid = uuid_of(name)
    if uuid is None:
        from smembench.devices.cuda_description import why_unusable

        raise DeviceUnavailable(f"device {name}: {why_unusable() or 'there is no such GPU'}; --run FILE shows a sheet")
    check_optimised()
    with locked([name]):
        from smembench.devices.cuda import CudaDevice
        from smembench.studies.probe.bench import Bench

        gpu = CudaDevice(int(name.partition(":")[2]))
        began = datetime.now(UTC).isoformat(timespec="seconds")
        figures = []
        for figure in probe(Bench(gpu), families):
            seen(figure)
            figures.append(figure)
    info = {name: value for name, value in gpu.info.known.items() if name != "uuid"}
    return Sheet(
        measured_at_utc=began, device=DeviceInfo.model_validate(info), versions=versions(cuda=True), figures=figures
    )


def repeated(
    device: str, families: Sequence[str], processes: int, seen: Callable[[Figure], None] = lambda figure: None
) -> Sheet:
    """The same in several processes, one after another: the interval of one leaves out what differs between them.

    A figure is the median of theirs, in an interval that contains all of theirs.

    Raises:
        RuntimeError: for a process that ends without a sheet.
    """
    sheet = measured(device, families, seen)
    others = [_in_a_process(sheet.device.name, families) for _ in range(processes - 1)]
    alike = grouped(
        (figure for other in others for figure in other.figures), lambda figure: (figure.family, figure.name)
    )
    figures = [_over([figure, *alike.get((figure.family, figure.name), ())]) for figure in sheet.figures]
    return sheet.model_copy(update={"figures": figures, "processes": processes})


def _in_a_process(device: str, families: Sequence[str]) -> Sheet:
    options = ("--device", device, "--processes", 1, "--json")
    ran = captured(child_command("smembench", "probe", ",".join(families), *options))
    try:
        return Sheet.model_validate_json(ran.stdout)
    except ValidationError:
        why = " ".join((ran.stderr or ran.stdout).split())[-300:]
        raise RuntimeError(f"a process that measures again failed: {why}") from None


def _over(figures: Sequence[Figure]) -> Figure:
    """The figure over several processes, as the first describes it; missing if it is missing in any."""
    if missing := [figure for figure in figures if figure.value is None]:
        return missing[0]
    ends = [end for figure in figures for end in (figure.low, figure.high) if end is not None]
    value = median(figure.value for figure in figures if figure.value is not None)
    return replace(figures[0], value=value, low=min(ends, default=None), high=max(ends, default=None))


def read(path: Path) -> Sheet:
    """A stored sheet.

    Raises:
        UsageError: if there is none, and if it is damaged, with the field.
    """
    sheet = read_json(path, Sheet, "measure it again with smembench probe --export FILE.json")
    if sheet is None:
        raise UsageError(f"{path}: there is no such file; smembench probe --export {path} makes one")
    return sheet


def of_run(run: Run) -> Sheet | None:
    """The data sheet in a run's folder, if there is one.

    Raises:
        UsageError: if it is damaged.
    """
    path = run.path / IN_RUN if run.path and run.path.is_dir() else None
    return read(path) if path is not None and there(path) else None
