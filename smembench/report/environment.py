"""run.json as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.studies.history.read import devices_of
from smembench.views.columns import Column
from smembench.views.sections import Section, table


def environment(run: Description) -> list[Section]:
    """Devices beside each other, software, configuration, and the run itself; empty for a run without run.json."""
    sections = []
    if run.devices:
        devices = [device.known for device in run.devices]
        keys = dict.fromkeys(key for device in devices for key in device if key != "name")
        cells = [[key, *(shown(device.get(key)) for device in devices)] for key in keys]
        sections.append(_texts("Devices", ["", *(device.name for device in run.devices)], cells))
    config = run.config.data
    config.pop("sweep", None)
    config |= {f"sweep {place}": sweep for place, sweep in enumerate(run.config.sweep, start=1)}
    rest = {key: value for key, value in run.data.items() if key not in ("devices", "versions", "config")}
    pairs: dict[str, Mapping[str, object]] = {"Software": run.versions, "Configuration": config, "Run": rest}
    for heading, values in pairs.items():
        if values:
            cells = [[key, text] for key, value in values.items() if (text := shown(value))]
            sections.append(_texts(heading, ["", "value"], cells))
    return sections


def run_names(runs: Sequence[Run]) -> Callable[[Run], str]:
    """The name of each run in a report: its id, with its devices if those of the runs differ.

    Several that measured a GPU each may have begun in the same second, and have one id.
    """
    devices = [devices_of(run.description) for run in runs]
    several = any(one != devices[0] for one in devices)
    ids = {name: {one[name].id for one in devices if name in one} for name in dict.fromkeys(chain(*devices))}

    def name_of(run: Run) -> str:
        own = devices_of(run.description)
        labels = [f"{name} {device.id}".strip() if len(ids[name]) > 1 else name for name, device in own.items()]
        return f"{run.id} on {', '.join(labels)}" if several and labels else run.id

    return name_of


def overview(runs: Sequence[Run], name_of: Callable[[Run], str]) -> Section:
    """The runs of a report, one per line."""
    return table(
        "The runs of this report",
        runs,
        {
            "run": lambda run: name_of(run) + ("" if run.complete else " (cut off)"),
            "device": lambda run: ", ".join(device.model for device in run.description.devices),
            "cases": lambda run: str(len(run.rows)),
            "ok": lambda run: str(sum(row.ok for row in run.rows)),
            "failed": lambda run: str(len(run.failed)),
            "skipped": lambda run: str(sum(row.status == "skipped" for row in run.rows)),
        },
        words=("run", "device"),
    )


def shown(value: object) -> str:
    """A value of run.json as text: nested ones as ``key=value``, empty ones as ""."""
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return " ".join(f"{key}={text}" for key, part in value.items() if (text := shown(part)))
    return ",".join(map(shown, value)) if isinstance(value, list) else str(value)


def _texts(heading: str, columns: Sequence[str], cells: list[list[str]]) -> Section:
    return Section(heading, [Column(name, numeric=False) for name in columns], cells)
