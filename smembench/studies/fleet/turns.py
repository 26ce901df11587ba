"""The parts of a fleet's config: what all GPUs of a host measure at once, and what only one of them at a time."""

from __future__ import annotations

from pydantic import JsonValue

from smembench.kernels.problems import PROBLEMS
from smembench.run.config import Config

_SUFFIX = "-turns"
_MOST = 64
"""Characters of a config's name."""


def at_once(config: Config) -> Config | None:
    """The sweeps that do not disturb other GPUs of a host; None if there are none."""
    return _part(config, config.name, uses_host=False)


def in_turns(config: Config) -> Config | None:
    """The sweeps that use what the GPUs of a host share, as a config of its own name; None if there are none."""
    return _part(config, config.name[: _MOST - len(_SUFFIX)] + _SUFFIX, uses_host=True)


def _part(config: Config, name: str, *, uses_host: bool) -> Config | None:
    sweeps = tuple(sweep for sweep in config.sweep if PROBLEMS[sweep.problem].uses_host is uses_host)
    return config.model_copy(update={"name": name, "sweep": sweeps}) if sweeps else None


def on_device(config: Config, device: str) -> dict[str, JsonValue]:
    """A config as data, with all sweeps on this device."""
    data = config.model_dump(mode="json")
    for sweep in data["sweep"]:
        sweep["device"] = [device]
    return data
