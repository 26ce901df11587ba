"""A fleet, from its config to a folder: every device in a process of its own, all at once."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smembench.model.errors import DeviceUnavailable, SmembenchError, UsageError
from smembench.run.config import Config, from_stored
from smembench.store.files import sync_folder
from smembench.store.fleet_json import FLEET, Entry, FleetFile, read_fleet_file, write_fleet_file
from smembench.store.run_folder import new_run_id
from smembench.store.run_json import StoredConfig
from smembench.studies.fleet.ask import ask_hosts
from smembench.studies.fleet.cluster import Where, connected
from smembench.studies.fleet.dispatch import Dispatch
from smembench.studies.fleet.hosts import Host, ask_host
from smembench.studies.fleet.options import Devices, Options, Watch
from smembench.studies.fleet.plan import again, entries_of

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, slots=True)
class Finished:
    """A fleet's folder, and what ended it before each device was complete or failed."""

    folder: Path
    error: SmembenchError | KeyboardInterrupt | None


def begin(
    root: Path, config: Config, devices: Devices, options: Options, watch: Watch, *, anonymous: bool = False
) -> Finished:
    """Measure a new fleet.

    Args:
        root: where to make its folder.
        anonymous: pseudonyms in place of host names and UUIDs.

    Raises:
        SmembenchError: as ``run_fleet``; nothing is left of a fleet that has no device.
    """
    folder = _create(root, config, devices, anonymous=anonymous)
    try:
        return run_fleet(folder, options, watch)
    finally:
        if not read_fleet_file(folder).devices:
            (folder / FLEET).unlink()
            folder.rmdir()


def run_fleet(folder: Path, options: Options, watch: Watch) -> Finished:
    """Measure the devices of a fleet that are not complete; what ends it on its way is in the result.

    Raises:
        UsageError: for a folder that is no fleet's, and for a cluster that cannot be reached.
        DeviceUnavailable: if this host has no such device.
        SmembenchError: if the results cannot be written, and if there is no worker at all.
    """
    content = read_fleet_file(folder)
    config = from_stored(content.config.data)
    where = options.where
    asking: dict[str, Any] = {"anonymous": content.anonymous, "limit": options.host_limit}
    here = ask_here(content.chosen, **asking) if where.here else None
    count = content.workers * len(here.devices) if here else 0
    with connected(where, count) as client:
        path = str(folder.resolve())
        hosts = [here] if here else ask_hosts(client, path, content.chosen, count=where.hosts, **asking)
        now = [entry for host in hosts for entry in entries_of(host, content.workers)]
        content = content.model_copy(update={"devices": tuple(again(content.devices, now))})
        _note_threads(client, hosts, content.devices, watch)
        for entry in content.devices:
            watch.state(entry)
        error = Dispatch(client, folder, content, config, options, watch).run(hosts)
    return Finished(folder, error)


def ask_here(devices: Sequence[str], *, anonymous: bool, limit: float) -> Host:
    """This host with the devices named, without names all its GPUs.

    Raises:
        DeviceUnavailable: if it has no GPU, and none is named.
    """
    host = ask_host("", devices, anonymous, limit)
    if any(device.device for device in host.devices):
        return host
    raise DeviceUnavailable(
        f"no GPU is usable on this host: {host.devices[0].reason} (see: smembench doctor); "
        "--device cpu --workers 2 tries a fleet on the CPU, --scheduler and --script find other hosts"
    )


def _create(root: Path, config: Config, devices: Devices, *, anonymous: bool) -> Path:
    """Make the folder ``<UTC time>-<config>-fleet`` with its fleet.json, which names no device yet.

    Without a seed in the config a random one is drawn: all devices get the same inputs, in the same order.

    Raises:
        UsageError: if it exists, or cannot be made or written.
    """
    config = config.model_copy(update={"seed": secrets.randbits(31) if config.seed is None else config.seed})
    started = datetime.now(UTC)
    fleet_id = new_run_id(config.name if config.name.endswith("fleet") else f"{config.name}-fleet", started)
    content = FleetFile(
        schema_version=1,
        fleet_id=fleet_id,
        started_at_utc=started.isoformat(timespec="seconds"),
        anonymous=anonymous,
        config=StoredConfig.model_validate(config.model_dump(mode="json")),
        chosen=devices.names,
        workers=devices.workers,
    )
    folder = root / fleet_id
    try:
        folder.mkdir(parents=True)
        write_fleet_file(folder, content)
        sync_folder(root)
    except FileExistsError:
        raise UsageError(f"{folder}: already exists; wait a second or give another --output") from None
    except OSError as error:
        raise UsageError(f"--output {root}: {folder} cannot be made ({error.strerror})") from None
    return folder


def _note_threads(client: Client, hosts: Sequence[Host], entries: Sequence[Entry], watch: Watch) -> None:
    """Say on which hosts the devices cannot run at once."""
    threads = client.nthreads()
    for host in hosts:
        count = sum(entry.host == host.name and entry.state == "waiting" for entry in entries)
        room = sum(threads.get(address, 0) for address in host.workers)
        if host.workers and 0 < room < count:
            watch.note(
                f"{host.name}: its Dask workers have {room} threads for {count} devices, which so are not measured "
                f"all at once; start dask worker with --nthreads {count}"
            )


def would_measure(where: Where, devices: Devices, limit: float) -> list[Entry]:
    """The devices of a fleet, without a folder; raises as ``run_fleet``."""
    if where.here:
        return entries_of(ask_here(devices.names, anonymous=False, limit=limit), devices.workers)
    with connected(where, 0) as client:
        hosts = ask_hosts(client, "", devices.names, anonymous=False, limit=limit, count=where.hosts)
    return [entry for host in hosts for entry in entries_of(host, devices.workers)]
