"""The shape of a run's description, in run.json and at the head of a journal: what every reader of it relies on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

_SAID: dict[type, str] = {str: "text", list: "a list", dict: "an object"}
_RUN: dict[str, type] = {
    "run_id": str,
    "started_at_utc": str,
    "config": dict,
    "versions": dict,
    "devices": list,
    "git": dict,
    "host": dict,
}
_NULLABLE = ("git", "host")
_CONFIG: dict[str, type] = {"name": str, "sweep": list}
_DEVICE: dict[str, type] = {"name": str, "kind": str}


def fault(run: object, needed: Collection[str] = ()) -> str:
    """The first thing that keeps this from describing a run, or ""; to leave out what is not needed is no fault."""
    if not isinstance(run, dict):
        return "it is not an object"
    return next((f"it has no {name}" for name in needed if name not in run), "") or next(_faults(run), "")


def _faults(run: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong; each is only looked for when there is nothing before it."""
    told = {name: value for name, value in run.items() if value is not None or name not in _NULLABLE}
    yield from _wrong("", told, _RUN)
    yield from _wrong("config.", run.get("config", {}), _CONFIG)
    for place, device in enumerate(run.get("devices", ())):
        where = f"devices[{place}]"
        if not isinstance(device, dict) or "name" not in device:
            yield f"{where} is not an object with a name"
        yield from _wrong(f"{where}.", device, _DEVICE)
        yield from (
            f"{where}.{name} is not one value" for name, value in device.items() if isinstance(value, list | dict)
        )


def _wrong(where: str, found: Mapping[str, Any], kinds: Mapping[str, type]) -> Iterator[str]:
    for name, kind in kinds.items():
        if name in found and not isinstance(found[name], kind):
            yield f"{where}{name} is not {_SAID[kind]}"
