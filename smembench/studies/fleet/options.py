"""Options of a fleet: what is measured and how, and who is notified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from smembench.store.fleet_json import Entry
from smembench.studies.fleet.cluster import Where


@dataclass(frozen=True, slots=True)
class Watch:
    """Callbacks: a line for the user, a device whose state changed, and how far a device is: trials done and known."""

    note: Callable[[str], None]
    state: Callable[[Entry], None]
    progress: Callable[[Entry, int, int, str], None]


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of each host that a fleet is to measure.

    Attributes:
        names: such as cuda:0; all GPUs if it is empty.
        workers: processes per device at once; more than one only on the CPU.
    """

    names: tuple[str, ...] = ()
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Options:
    """Options for measuring a fleet.

    Attributes:
        where: its Dask workers.
        host_limit: seconds that a host may take to come and to answer.
        stalled: seconds without progress after which a device's process is killed; None for those of the longest trial
            that the config allows, and a minute.
        force: resume even if the environment of a device differs.
        argv: the arguments that run.json records.
    """

    where: Where
    host_limit: float = 60.0
    stalled: float | None = None
    force: bool = False
    argv: tuple[str, ...] = ()
