"""A run that was killed, read back from its journal without a device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from smembench.explain.prediction import predict, trace_together
from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.model.measurement import Measurement
from smembench.run.config import from_stored
from smembench.run.stop_rule import rules_of
from smembench.store import journal
from smembench.store.assemble import assemble


def recover(path: Path) -> tuple[list[Measurement], dict[str, Any]]:
    """Measurements of every case a journal holds, in the order they were begun, and the run's description.

    Raises:
        UsageError: for a journal that cannot be read, or is of cases that this smembench does not know.
    """
    contents = journal.read(path)
    infos = {device["name"]: DeviceInfo.from_dict(device) for device in contents.run["devices"]}
    precision = {kind: rule.precision for kind, rule in rules_of(from_stored(contents.run["config"])).items()}
    try:
        cases = list(dict.fromkeys(trial.case for trial in contents.trials))
        trace_together(cases, lambda case, number, of: None)
        return assemble(cases, contents.trials, infos, precision, predict), contents.run
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: holds a trial that cannot be read here ({type(error).__name__}: {error})") from None
