"""A run that was killed, read back from its journal without a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smembench.assemble import assemble
from smembench.config import from_stored
from smembench.devices.base import DeviceInfo
from smembench.errors import UsageError
from smembench.explain.prediction import trace_together
from smembench.measurement import Measurement
from smembench.plan import Planned
from smembench.rules import rules_of
from smembench.store import journal


def recover(path: Path) -> tuple[list[Measurement], dict[str, Any]]:
    """Measurements of every case a journal holds, in the order they were begun, and the run's description.

    Raises:
        UsageError: for a journal that cannot be read, or is of cases that this smembench does not know.
    """
    contents = journal.read(path)
    infos = {device["name"]: DeviceInfo.from_dict(device) for device in contents.run["devices"]}
    precision = {kind: rule.precision for kind, rule in rules_of(from_stored(contents.run["config"])).items()}
    try:
        planned = [Planned(case) for case in dict.fromkeys(visit.case for visit in contents.visits)]
        trace_together((item.case for item in planned), lambda case, number, of: None)
        return assemble(planned, contents.visits, infos, precision), contents.run
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: holds a visit that cannot be read here ({type(error).__name__}: {error})") from None
