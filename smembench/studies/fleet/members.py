"""A fleet as studies see it: its devices, each with what was measured on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from smembench.model.device import DeviceInfo
from smembench.store.fleet_json import label
from smembench.store.run import Run
from smembench.store.schema import Row


@dataclass(frozen=True, slots=True)
class Member:
    """A device of a fleet.

    Attributes:
        host: its name, or a pseudonym; "" if the run does not say.
        device: the device's name on that host, such as ``cuda:3``.
        info: the device as its run describes it, or as its host listed it; None for a host that listed none.
        run: the newest run on it, with the rows of this device alone; None if nothing was measured.
        reason: why nothing, or not everything, was measured; "" for a complete run.
        number: which of several processes that measured the same device at once, from 1; only the CPU has several.
    """

    host: str
    device: str
    info: DeviceInfo | None
    run: Run | None
    reason: str = ""
    number: int | None = None

    @property
    def model(self) -> str:
        """The vendor's name of the device: only devices of one model are compared. "" if unknown."""
        return self.info.model if self.info else ""

    @property
    def uuid(self) -> str | None:
        """The GPU's UUID or its pseudonym; None if unknown."""
        return self.info.uuid if self.info else None

    @property
    def failed(self) -> bool:
        """True if it was not measured, or not completely, or a case failed."""
        return self.run is None or bool(self.reason or self.run.failed)

    @property
    def identity(self) -> str:
        """Identity over nights: the UUID or its pseudonym, else host and device."""
        name = self.uuid or f"{self.host}/{self.device}"
        return f"{name}#{self.number}" if self.number else name

    @property
    def which(self) -> dict[str, str | None]:
        """The device for programs."""
        return {"host": self.host, "device": self.name, "uuid": self.uuid, "model": self.model}

    @property
    def name(self) -> str:
        """The device on its host, one process of several as another: ``cuda:3``, ``cpu #2``."""
        return label("", self.device, self.number)

    @property
    def label(self) -> str:
        """The device as a table names it: ``node7 cuda:3``, ``node7 cpu #2``."""
        return label(self.host, self.device, self.number)


@dataclass(frozen=True, slots=True)
class Fleet:
    """The devices that a folder holds runs of, in the order of hosts and devices."""

    path: Path
    members: Sequence[Member]


def metric(row: Row) -> str:
    """The name of a case that is the same on every device of a fleet: its id without the device."""
    return row.case_id.replace(f"/{row.device}/", "/", 1)
