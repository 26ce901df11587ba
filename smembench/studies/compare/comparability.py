"""Reasons why two measurements of a case cannot be compared, and differences of their environments."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import NamedTuple

from pydantic import ValidationError

from smembench.launches.dimensions import as_text
from smembench.launches.sizes import argument, dimensions_of
from smembench.model.device import MEASURED, DeviceInfo
from smembench.model.errors import NothingCompared, UsageError
from smembench.model.measurement import CROWDED, Status
from smembench.run.launch_sweep import LaunchSweep
from smembench.store.run import Run
from smembench.store.run_json import Description, Git
from smembench.store.schema import Row
from smembench.studies.compare.verdicts import MACHINE_CODE, Difference

_LAUNCH = "time"
"""The problem of the user's kernels, whose ids do not name the launch."""
FACETS = ("device",)
"""Facets that must match on both sides, unless ``across`` lets them differ; all else may differ, and is named."""
_DEVICE = ("model", "compute_capability", "sm_count", "mig")
"""The fields of run.json that distinguish devices, besides their identity."""
_CLOCK_LIMITS = ("sm_clock_max_mhz", "memory_clock_max_mhz", "power_limit_w")
OF_ROWS = (
    *("code_hash", "predicted_load_conflict", "predicted_store_conflict", "predicted_load_sectors"),
    *("predicted_store_sectors", "registers", "local_bytes", "predicted_occupancy", "cpu_governor"),
)
"""The columns of cases.csv that explain why a case changed, by what they explain."""
NAMES = {
    "code_hash": MACHINE_CODE,
    "predicted_load_conflict": "wavefronts per shared load",
    "predicted_store_conflict": "wavefronts per shared store",
    "predicted_load_sectors": "sectors per global load",
    "predicted_store_sectors": "sectors per global store",
    "predicted_occupancy": "occupancy",
    "sm_clock_max_mhz": "SM clock limit in MHz",
    "memory_clock_max_mhz": "memory clock limit in MHz",
    "power_limit_w": "power limit in W",
    "cpu_governor": "CPU frequency governor",
    "registers": "registers per thread",
    "local_bytes": "local memory in bytes per thread",
}
"""Names of columns of cases.csv and fields of run.json in messages."""
_LINES = {NAMES[f"predicted_{kind}_conflict"]: f"predicted_{kind}_line" for kind in ("load", "store")}
_OF_LAUNCH = ("grid", "block", "cluster", "arg")
_SHORT = 12
SM_CLOCK = "SM clock in MHz"
_ANOTHER_CLOCK = 0.005
"""Relative difference from which two clocks are not the same."""


def fault(row: Row) -> str:
    """The reason why a row's time cannot be compared with anything; "" if it can."""
    return distrust(row.status, row.reason, row.throttle_reasons, row.cpu_waiting, verified=row.right)


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
        return "measured on a busy host (threads waited for cores)"
    return ""


def not_the_same_case(pairs: Sequence[tuple[Run, Row]]) -> str:
    """The reason why rows with one id are of different cases; "" if they are of one."""
    launches = all(row.problem == _LAUNCH for _, row in pairs)
    for name in ("dtype", "m", "n", "k", *(("bytes", "flops") if launches else ())):
        if difference := _differing(name, [getattr(row, name) for _, row in pairs]):
            return f"not the same case: {difference}"
    sweeps = [run.description.config.sweep for run, _ in pairs]
    changed = launches and any(sweep != sweeps[0] for sweep in sweeps)  # else equal ids are equal launches
    launched = [_launch(run.description, row) for run, row in pairs] if changed else []
    for name in _OF_LAUNCH:
        if difference := _differing(name, [launch.get(name) for launch in launched]):
            return f"not the same case: {difference}"
    return ""


def _launch(run: Description, row: Row) -> Mapping[str, str]:
    """Launch of a user's kernel, by key of its sweep, with numbers for sizes; empty if unknown."""
    sizes = {"n": row.n, **dict(row.parameters)}
    for data in run.config.sweep:
        with suppress(ValidationError, UsageError):  # of another version
            sweep = LaunchSweep.model_validate(data)
            given = {**sweep.sizes, **sweep.tune}.items()
            if row.kernel in sweep.labels and all(sizes.get(name) in values for name, values in given):
                sides = ((name, getattr(sweep, name)) for name in ("grid", "block", "cluster"))
                shape = {name: as_text(dimensions_of(text, sizes, name)) if text else "none" for name, text in sides}
                # Without folders, and without the numbers behind dollar signs by which Python's own values go.
                arguments = [re.sub(r"\S*/| \$\d+$", "", argument(text, sizes)) for text in sweep.arg]
                return {**shape, "arg": " ".join(arguments)}
    return {}


def device_reason(pairs: Sequence[tuple[Run, Row]]) -> str:
    """The reason why a case's rows may be of several devices; "" if they are of one.

    Facts that a run does not record do not differ, but which of several equal devices it was has to be known.
    """
    devices = [run.description.device(row.device) for run, row in pairs]
    for name in _DEVICE:
        if difference := _differing(name, [_recorded(info, name) for info in devices]):
            return f"another device: {difference}"
    what = "host" if pairs[0][1].device == "cpu" else "GPU"
    identities = [(run.id, run.description.identity(row.device)) for run, row in pairs]
    unnamed = [run_id for run_id, identity in identities if not identity]
    if unnamed and len({run_id for run_id, _ in identities}) > 1:
        return f"{unnamed[0]} does not say which {what} it was measured on; if it is the same, add --across device"
    difference = _differing(what, [identity or None for _, identity in identities])
    return f"another device: {difference}" if difference else ""


def alike(one: Run, other: Run) -> bool:
    """True if devices with the same name in two runs are of the same kind, as far as they are described."""
    return not any(
        _differing(name, [_recorded(device, name), _recorded(other.description.device(device.name), name)])
        for device in one.description.devices
        for name in _DEVICE
    )


def check_apart(base: Sequence[Run], new: Sequence[Run]) -> None:
    """Make sure that no run is on both sides, wherever its files are.

    Raises:
        NothingCompared: for one that is.
    """
    for run in new:
        if any(same_run(run, other) for other in base):
            raise NothingCompared(f"{run.id} is on both sides: a run compared with itself tells nothing; give another")


def same_run(run: Run, other: Run) -> bool:
    """True if two are one run, wherever its files are: by its samples, or by its rows without; never without rows."""
    if not other.rows:
        return False
    return run.samples == other.samples if run.samples and other.samples else run.rows == other.rows


def _recorded(device: DeviceInfo | None, fact: str) -> object:
    """A recorded fact about a device; None if the run does not have it."""
    return getattr(device, fact) if device is not None and fact in device.model_fields_set else None


def _differing(name: str, values: Sequence[object]) -> str:
    """``model H100, then H200`` if recorded values differ, even within a side; else ""."""
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    return f"{NAMES.get(name, name)} {', then '.join(map(str, distinct))}" if len(distinct) > 1 else ""


class _Facts(NamedTuple):
    """Facts of a run that can change a figure, as text by name.

    Of a device and its host only what both sides record can differ; of the software a library may be absent.
    """

    software: Mapping[str, str]
    machine: Mapping[str, str]


def environment(base: Sequence[Description], new: Sequence[Description]) -> list[Difference]:
    """Differences between the run.json files of both sides: software, devices, host and sampling."""
    sides = [[_facts(run, run.devices) for run in runs if run.model_fields_set] for runs in (base, new)]
    return [_difference(name, *values) for name, *values in _values(*sides) if values[0] != values[1]]


def causes(base: Sequence[tuple[Run, Row]], new: Sequence[tuple[Run, Row]]) -> list[Difference]:
    """Possible causes of a case's change: facts of its device and software that no run of the base shares."""
    described = [[pair for pair in side if pair[0].description.model_fields_set] for side in (base, new)]
    sides = [[_of_case(run.description, row) for run, row in side] for side in described]
    changes = [_difference(name, *values) for name, *values in _values(*sides) if values[0].isdisjoint(values[1])]
    rank = {NAMES[name]: place for place, name in enumerate(OF_ROWS)}
    changes.sort(key=lambda one: rank.get(one.what, len(rank)))
    rows = [[row for _, row in side] for side in (base, new)]
    hashes = {row.code_hash for side in rows for row in side}
    if len(hashes) == 1 and None not in hashes:  # compilers made the same of it
        made = {name for side in described for run, _ in side for name in run.description.versions} - {"smembench"}
        (same,) = hashes
        changes = [Difference(MACHINE_CODE, str(same), str(same)), *(one for one in changes if one.what not in made)]
    return [*(_placed(one, rows[1]) for one in changes), *_clocks(*rows)]


def _placed(cause: Difference, new: Sequence[Row]) -> Difference:
    """The cause with the line that has the conflicts, if it is one of shared memory."""
    column = _LINES.get(cause.what)
    lines = {getattr(row, column) for row in new} - {None} if column else set()
    return replace(cause, new=f"{cause.new} (line {lines.pop()})") if len(lines) == 1 else cause


def _clocks(base: Sequence[Row], new: Sequence[Row]) -> list[Difference]:
    """The SM clock, where it is another."""
    sides = [[row.sm_clock_mhz for row in rows if row.sm_clock_mhz] for rows in (base, new)]
    if not all(sides):
        return []
    before, after = (median(readings) for readings in sides)
    apart = abs(after / before - 1) >= _ANOTHER_CLOCK
    return [Difference(SM_CLOCK, f"{before:g}", f"{after:g}")] if apart else []


def clock_was_set(base: Sequence[tuple[Run, Row]], new: Sequence[tuple[Run, Row]]) -> bool:
    """True if a clock or power limit differs from that in every run of the base."""
    for name in _CLOCK_LIMITS:
        before, after = (
            {_recorded(run.description.device(row.device), name) for run, row in side} - {None} for side in (base, new)
        )
        if before and after and before.isdisjoint(after):
            return True
    return False


def _values(base: Sequence[_Facts], new: Sequence[_Facts]) -> Iterator[tuple[str, set[str], set[str]]]:
    """Each fact that both sides may have, with its values there."""
    every = [*base, *new] if base and new else []
    machine = {name for facts in every for name in facts.machine}
    for name in dict.fromkeys(name for facts in every for name in (*facts.software, *facts.machine)):
        before, after = (
            {facts.machine.get(name, "") if name in machine else facts.software.get(name, "–") for facts in side} - {""}
            for side in (base, new)
        )
        if before and after:
            yield name, before, after


def _difference(name: str, base: Collection[str], new: Collection[str]) -> Difference:
    return Difference(name, ", ".join(sorted(base)), ", ".join(sorted(new)))


def _of_case(run: Description, row: Row) -> _Facts:
    facts = _facts(run, [device for device in run.devices if device.name == row.device])
    own = {NAMES[name]: _text(value) for name in OF_ROWS if (value := getattr(row, name)) is not None}
    return _Facts({"compiler": row.compiler, **facts.software}, {**facts.machine, **own})


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _facts(run: Description, devices: Sequence[DeviceInfo]) -> _Facts:
    code = f" {run.code[:_SHORT]}" if run.code and not (run.git and run.git.revision and not run.git.dirty) else ""
    software = {"git revision": revision(run.git) + code, **run.versions, **run.deciding}
    software |= {"git revision of the kernels": revision(run.kernels_git)} if run.kernels_git else {}
    software |= {
        name.replace("_", " "): str(value)
        for name, value in run.config.data.items()
        if name not in ("name", "seed", "sweep", "threshold", "decide")
    }
    machine = {
        f"{device.name} {NAMES.get(name, name.replace('_', ' '))}": str(value)
        for device in devices
        for name, value in device.known.items()
        if name not in (*MEASURED, "name", "kind")
    }
    machine |= {f"host {name}": str(value) for name, value in (run.host.data if run.host else {}).items()}
    return _Facts(software, machine)


def revision(git: Git | None) -> str:
    """A git revision, short, with ``+`` if the checkout had changes; – if unknown."""
    if git is None or not git.revision:
        return "–"
    return f"{git.revision[:_SHORT]}{'+' if git.dirty else ''}"
