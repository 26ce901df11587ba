"""A run that was killed, read back from its journal without a device."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from smembench.assemble import assemble
from smembench.config import from_stored
from smembench.devices.base import DeviceInfo
from smembench.measurement import Measurement
from smembench.plan import Planned
from smembench.rules import rules_of
from smembench.store import journal

_KNOWN = {field.name for field in fields(DeviceInfo)}


def recover(path: Path) -> tuple[list[Measurement], dict[str, Any]]:
    """Measurements of every case a journal holds, in the order they were begun, and the run's description.

    Raises:
        UsageError: for a journal that cannot be read.
    """
    contents = journal.read(path)
    planned = [Planned(case) for case in dict.fromkeys(visit.case for visit in contents.visits)]
    infos = {device["name"]: device_info(device) for device in contents.run["devices"]}
    precision = {kind: rule.precision for kind, rule in rules_of(from_stored(contents.run["config"])).items()}
    return assemble(planned, contents.visits, infos, precision), contents.run


def device_info(device: dict[str, Any]) -> DeviceInfo:
    """A device as run.json describes it, which leaves out what it does not have or should not tell."""
    described = {"model": device["name"], "memory_bytes": 0, **device}
    return DeviceInfo(**{key: value for key, value in described.items() if key in _KNOWN})
