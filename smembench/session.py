"""A run from config to measurements: devices opened, plan made, runner ready. Prints nothing."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType

from smembench.case import Case
from smembench.config import Config
from smembench.devices.base import Device, DeviceInfo
from smembench.devices.select import open_device, resolve
from smembench.measurement import Measurement
from smembench.plan import Planned, devices_needed, plan
from smembench.runner import Runner
from smembench.timing.sampling import StopRule


@dataclass(slots=True)
class Session:
    """Open devices and the cases to run on them; a context manager that closes the devices."""

    config: Config
    seed: int
    planned: list[Planned]
    devices: dict[str, Device]
    note: str | None

    @property
    def infos(self) -> list[DeviceInfo]:
        """The devices, in the order the cases use them."""
        return [device.info for device in self.devices.values()]

    def run(self, begin: Callable[[Case], None] = lambda case: None) -> Iterator[Measurement]:
        """Measure every case."""
        rule = StopRule(self.config.samples, self.config.max_seconds)
        return Runner(self.devices, rule, self.seed).run(self.planned, begin)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for device in self.devices.values():
            device.close()


def open_session(config: Config) -> Session:
    """Open the devices a config needs and plan its cases; everything that can be refused is refused here.

    Raises:
        UsageError: for cases that cannot run.
        DeviceUnavailable: for a device that is not there.
    """
    names = dict.fromkeys(name for sweep in config.sweep for name in sweep.device)
    resolved, note = {}, None
    for name in names:
        (resolved[name],), said = resolve([name])
        note = note or said
    needed = devices_needed(config, resolved)
    devices = {name: open_device(name) for name in needed}
    limits = {name: device.limits() for name, device in devices.items()}
    if "cpu" not in limits:
        limits["cpu"] = open_device("cpu").limits()
    return Session(
        config=config,
        # Without a seed every run draws new inputs; the seed is recorded, so any run can be repeated.
        seed=secrets.randbits(31) if config.seed is None else config.seed,
        planned=plan(config, limits, resolved),
        devices=devices,
        note=note,
    )
