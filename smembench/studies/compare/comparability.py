"""Why two measurements of a case cannot be compared, and how their environments differ."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from smembench.model.device import MEASURED, DeviceInfo
from smembench.model.measurement import CROWDED, Status
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.store.schema import Row
from smembench.studies.compare.verdicts import Difference

FACETS = ("device", "driver", "clocks")
"""What must be the same on both sides, unless ``across`` allows it to differ."""
_PARTS = {
    "device": ("model", "compute_capability", "sm_count", "ecc", "mig"),
    "driver": ("driver",),
    "clocks": ("sm_clock_max_mhz", "memory_clock_max_mhz", "power_limit_w"),
}
"""The fields of a device in run.json that make up a facet, besides the identity of a device."""
_NAMES = {
    "sm_clock_max_mhz": "SM clock limit in MHz",
    "memory_clock_max_mhz": "memory clock limit in MHz",
    "power_limit_w": "power limit in W",
    "cpu_governor": "CPU frequency governor",
}
_SHORT_REVISION = 12


def fault(row: Row) -> str:
    """Why a row's time cannot be compared with anything; "" if it can."""
    return distrust(row.status, row.reason, row.throttle_reasons, row.cpu_waiting, verified=row.verified)


def distrust(
    status: str, reason: str | None, throttle_reasons: str | None, cpu_waiting: float | None, *, verified: bool
) -> str:
    """The same for those columns of cases.csv that decide it."""
    if status != Status.OK:
        return f"{status}: {reason}" if reason else status
    if not verified:
        return "the result was not verified"
    if throttle_reasons not in (None, "none"):
        return f"the GPU throttled ({throttle_reasons})"
    if cpu_waiting is not None and cpu_waiting > CROWDED:
        return "measured on a busy host, where it waited for cores"
    return ""


def facet_reason(base: Sequence[tuple[Run, Row]], new: Sequence[tuple[Run, Row]], across: Collection[str] = ()) -> str:
    """Why two sides of a case are not comparable; "" if they are.

    Facts that a side does not record do not differ, but which of several equal devices it was has to be known.

    Args:
        base: the case's rows with their runs.
        new: the same of the other side.
        across: facets that may differ.
    """
    sides = [[row for _, row in side] for side in (base, new)]
    for name in ("dtype", "m", "n", "k"):
        if difference := _differing(name, *([getattr(row, name) for row in side] for side in sides)):
            return f"not the same case: {difference}"
    devices = [[run.description.device(row.device) for run, row in side] for side in (base, new)]
    for facet in (facet for facet in FACETS if facet not in across):
        for name in _PARTS[facet]:
            if difference := _differing(name, *([_recorded(info, name) for info in side] for side in devices)):
                return f"another {_one(facet)}: {difference}"
        if facet == "device" and (reason := _another([*base, *new])):
            return reason
    governors = [[row.cpu_governor for row in side] for side in sides]
    if "clocks" not in across and (difference := _differing("cpu_governor", *governors)):
        return f"another {_one('clocks')}: {difference}"
    return ""


def alike(one: Run, other: Run) -> bool:
    """Whether two runs on the same devices agree in all their recorded facets."""
    return not any(
        _differing(name, [_recorded(device, name)], [_recorded(other.description.device(device.name), name)])
        for device in one.description.devices
        for facet in FACETS
        for name in _PARTS[facet]
    )


def _another(found: Sequence[tuple[Run, Row]]) -> str:
    """Why a case's rows may be of several devices of one model; "" if all are of one."""
    what = "host" if found[0][1].device == "cpu" else "GPU"
    told = [(run.id, run.description.identity(row.device)) for run, row in found]
    untold = [run_id for run_id, identity in told if not identity]
    if untold and len({run_id for run_id, _ in told}) > 1:
        return f"{untold[0]} does not say which {what} it was measured on; if it is the same, add --across device"
    difference = _differing(what, [identity or None for _, identity in told], ())
    return f"another device: {difference}" if difference else ""


def _one(facet: str) -> str:
    return "clock policy" if facet == "clocks" else facet


def _recorded(device: DeviceInfo | None, fact: str) -> object:
    """A recorded fact about a device; None if the run does not have it."""
    return getattr(device, fact) if device is not None and fact in device.model_fields_set else None


def _differing(name: str, base: Sequence[object], new: Sequence[object]) -> str:
    """``driver 580, then 590`` if recorded values differ, even within a side; else ""."""
    found = list(dict.fromkeys(value for value in (*base, *new) if value is not None))
    return f"{_NAMES.get(name, name)} {', then '.join(map(str, found))}" if len(found) > 1 else ""


def environment(base: Sequence[Description], new: Sequence[Description]) -> list[Difference]:
    """Differences between the run.json files of both sides: software, devices, host and sampling."""
    sides = [[_described(run) for run in runs if run.model_fields_set] for runs in (base, new)]
    if not all(sides):
        return []
    names = dict.fromkeys(name for side in sides for described in side for name in described)
    found = []
    for name in names:
        values = [sorted({described.get(name, "–") for described in side}) for side in sides]
        if values[0] != values[1]:
            found.append(Difference(name, *(", ".join(side) for side in values)))
    return found


def _described(run: Description) -> dict[str, str]:
    """A run.json as one text for each fact that can change a figure."""
    found = {"git revision": revision(run), **run.versions, **run.deciding}
    for device in run.devices:
        found |= {
            f"{device.name} {_NAMES.get(name, name.replace('_', ' '))}": str(value)
            for name, value in device.known.items()
            if name not in (*MEASURED, "name", "kind")
        }
    found |= {f"host {name}": str(value) for name, value in (run.host.data if run.host else {}).items()}
    found |= {
        name.replace("_", " "): str(value)
        for name, value in run.config.data.items()
        if name not in ("name", "seed", "sweep", "threshold")
    }
    return found


def revision(run: Description) -> str:
    """The git revision a run was made from, short, with ``+`` if the checkout had changes; – if unknown."""
    if run.git is None or not run.git.revision:
        return "–"
    return f"{run.git.revision[:_SHORT_REVISION]}{'+' if run.git.dirty else ''}"
