"""run.json as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.views.columns import Column
from smembench.views.sections import Section

_TABLES = ("devices", "versions", "config")


def environment(run: Description) -> list[Section]:
    """Devices beside each other, software, configuration, and the run itself; empty for a run without run.json."""
    found = []
    if run.devices:
        devices = [device.known for device in run.devices]
        keys = dict.fromkeys(key for device in devices for key in device if key != "name")
        found.append(
            Section(
                heading="Devices",
                columns=[_text(""), *(_text(device.name) for device in run.devices)],
                cells=[[key, *(shown(device.get(key)) for device in devices)] for key in keys],
            )
        )
    if run.versions:
        found.append(_pairs("Software", run.versions))
    if config := run.config.data:
        config.pop("sweep", None)
        config |= {f"sweep {place}": sweep for place, sweep in enumerate(run.config.sweep, start=1)}
        found.append(_pairs("Configuration", config))
    if rest := {key: value for key, value in run.data.items() if key not in _TABLES}:
        found.append(_pairs("Run", rest))
    return found


def overview(runs: Sequence[Run]) -> Section:
    """The runs of a report, one per line."""
    headings = ("run", "device", "cases", "ok", "failed", "skipped")
    cells = []
    for stored in runs:
        models = [device.model for device in stored.description.devices]
        states = [row.status for row in stored.rows]
        ok, skipped = states.count("ok"), states.count("skipped")
        failed = len(states) - ok - skipped
        cut = "" if stored.complete else " (cut off)"
        cells.append([stored.id + cut, ", ".join(models), *map(str, (len(states), ok, failed, skipped))])
    return Section(
        heading="The runs of this report",
        columns=[Column(heading, numeric=heading not in ("run", "device")) for heading in headings],
        cells=cells,
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


def _pairs(heading: str, values: Mapping[str, object]) -> Section:
    cells = [[key, text] for key, value in values.items() if (text := shown(value))]
    return Section(heading=heading, columns=[_text(""), _text("value")], cells=cells)


def _text(heading: str) -> Column:
    return Column(heading, numeric=False)
