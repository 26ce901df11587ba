"""fleet.json: what a fleet was to measure on which device of which host, and how far each came.

Each device's runs are ordinary run folders below its own folder, beside fleet.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from smembench.model.errors import UsageError
from smembench.store.files import write_whole
from smembench.store.run_folder import to_json
from smembench.store.run_json import Moment, Part, StoredConfig, read_json

FLEET = "fleet.json"
State = Literal["waiting", "running", "complete", "failed"]


class Entry(Part):
    """A device of a fleet; ``device`` is empty for a host on which none was found.

    Attributes:
        host: its name, or a pseudonym; its address if it never reported its name.
        number: which of several processes that measure the same device at once, from 1; only the CPU has several.
        uuid, model: of a GPU, as listed before it was opened; an anonymous fleet has a pseudonym of the UUID.
        folder: where its runs are, relative to fleet.json.
        reason: why it failed, or why it is not complete yet.
    """

    host: str
    device: str = ""
    number: int | None = None
    uuid: str | None = None
    model: str = ""
    folder: str = ""
    state: State = "waiting"
    reason: str = ""

    @property
    def label(self) -> str:
        """The device as lines and tables name it: ``node7 cuda:3``, ``node7 cpu #2``."""
        return label(self.host, self.device, self.number)


class FleetFile(Part):
    """A whole fleet.json.

    Attributes:
        config: with the seed that all devices use.
        chosen: the devices asked for by name; empty for all GPUs.
        workers: how many processes measure each device at once; more than one only on the CPU.
    """

    schema_version: Literal[1] = 1
    fleet_id: str = ""
    started_at_utc: Moment = ""
    ended_at_utc: Moment = ""
    anonymous: bool = False
    config: StoredConfig = StoredConfig()
    chosen: tuple[str, ...] = ()
    workers: int = 1
    devices: tuple[Entry, ...] = ()


def label(host: str, device: str, number: int | None) -> str:
    """A device as lines and tables name it."""
    return " ".join(filter(None, (host, device, f"#{number}" if number else "")))


def read_fleet_file(folder: Path) -> FleetFile:
    """Read the fleet.json of a folder.

    Raises:
        UsageError: if there is none, or it is damaged, with the field.
    """
    fleet = read_json(folder / FLEET, FleetFile, "mend it, or show the folders of its runs one by one")
    if fleet is None:
        raise UsageError(f"{folder}: holds no {FLEET}; give the folder that `fleet run` made")
    return fleet


def write_fleet_file(folder: Path, content: FleetFile) -> None:
    """Write fleet.json whole.

    Raises:
        OSError: if the disk is full or the folder was removed.
    """
    data = {"schema_version": content.schema_version, **content.model_dump(mode="json", exclude_defaults=True)}
    write_whole(folder / FLEET, to_json(data))
