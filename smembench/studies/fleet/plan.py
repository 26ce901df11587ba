"""The devices of a fleet, from what its hosts say, new or as fleet.json has them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from smembench.store.fleet_json import Entry
from smembench.studies.fleet.hosts import Host


def entries_of(host: Host, copies: int = 1) -> list[Entry]:
    """The entries of a host; with several ``copies`` each CPU is listed that number of times, numbered from 1."""
    numbers: Sequence[int | None] = range(1, copies + 1) if copies > 1 else (None,)
    return [_entry(host.name, device, number) for device in host.devices for number in numbers]


def _entry(host: str, listed: Entry, number: int | None) -> Entry:
    parts = (host, listed.device.replace(":", ""), str(number or ""))
    folder = re.sub(r"[^A-Za-z0-9._-]", "_", "-".join(filter(None, parts)))
    state = "failed" if listed.reason else "waiting"
    return listed.model_copy(update={"host": host, "number": number, "folder": folder, "state": state})


def again(before: Iterable[Entry], now: Iterable[Entry]) -> list[Entry]:
    """The entries of a fleet that goes on: those of before, as far as the hosts have their devices, and new ones.

    What was complete stays so. A host of which nothing was known before gives way to its devices.
    """
    current = {_key(entry): entry for entry in now}
    answered = {entry.host for entry in current.values() if entry.device}
    kept = {_key(entry): entry for entry in before if entry.device or entry.host not in answered}
    return [
        *(_going_on(entry, current.get(key)) for key, entry in kept.items()),
        *(entry for key, entry in current.items() if key not in kept),
    ]


def _key(entry: Entry) -> tuple[str, str, int | None]:
    return entry.host, entry.device, entry.number


def _going_on(before: Entry, now: Entry | None) -> Entry:
    if before.state == "complete":
        return before
    if now is None:
        reason = "its host did not answer, or does not list it any more"
    elif before.uuid and now.uuid and before.uuid != now.uuid:
        reason = f"it is another GPU now: {now.uuid}, not {before.uuid}"
    else:
        reason = now.reason
        before = before.model_copy(update={"uuid": before.uuid or now.uuid, "model": before.model or now.model})
    return before.model_copy(update={"state": "failed" if reason else "waiting", "reason": reason})
