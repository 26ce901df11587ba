"""Ask the hosts of a Dask cluster what devices they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from smembench.model.errors import SmembenchError
from smembench.model.groups import grouped
from smembench.model.interrupts import interruptible
from smembench.model.text import duration, one_line
from smembench.run.pseudonym import pseudonym
from smembench.store.fleet_json import Entry
from smembench.studies.fleet.hosts import Host, ask_host

if TYPE_CHECKING:
    from distributed import Client


def ask_hosts(
    client: Client, folder: str, devices: Sequence[str], *, anonymous: bool, limit: float, count: int
) -> list[Host]:
    """Descriptions of a cluster's hosts, by name; a host that does not answer is named by its address.

    Waits ``limit`` seconds for ``count`` workers, one per host, and as long for the answers.

    Raises:
        SmembenchError: if there is no worker at all.
    """
    from distributed.comm import get_address_host

    with interruptible():
        try:
            client.wait_for_workers(count, timeout=limit)
        except TimeoutError:
            if not client.nthreads():
                late = f"no Dask worker came within {duration(limit)}; --host-timeout waits longer"
                raise SmembenchError(late) from None
        came = list(client.nthreads())
        places: dict[str, list[str]] = grouped(came, get_address_host)
        given = (folder, list(devices), anonymous, limit)
        asked = {
            place: client.submit(ask_host, *given, workers=workers, allow_other_workers=False, pure=False, retries=0)
            for place, workers in places.items()
        }
        until = monotonic() + limit
        hosts: dict[str, Host] = {}
        if missing := max(0, count - len(came)):
            name = f"{missing} of {count} hosts"
            hosts[name] = Host(name, (Entry(host=name, reason=f"did not start within {duration(limit)}"),))
        for place, future in asked.items():
            host = _answer(place, future, max(0.0, until - monotonic()), limit, anonymous)
            add_host(hosts, host, place, places[place])
    return [hosts[name] for name in sorted(hosts)]


def add_host(hosts: dict[str, Host], host: Host, place: str, workers: Sequence[str]) -> None:
    """Add a host to those known by name: one with several addresses is one, another of the same name gets its address.

    ``workers`` are the Dask workers at the address ``place``.
    """
    known = hosts.get(host.name)
    if known is not None and known.boot != host.boot:
        host, known = replace(host, name=f"{host.name}@{place}"), None
    hosts[host.name] = replace(host, workers=(*(known.workers if known else ()), *workers))


def _answer(place: str, future: Any, seconds: float, limit: float, anonymous: bool) -> Host:
    try:
        host: Host = future.result(timeout=seconds)
    except Exception as error:
        future.cancel()
        slow = isinstance(error, TimeoutError)
        message = type(error).__name__ if anonymous else one_line(error)
        reason = f"did not answer within {duration(limit)}" if slow else f"cannot be asked: {message}"
        name = (pseudonym(place) or "anonymous") if anonymous else place
        return Host(name, (Entry(host=name, reason=reason),))
    return host
