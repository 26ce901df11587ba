"""A worker in this process, for kernels that only this process has."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.devices.base import Device
from smembench.devices.select import open_device
from smembench.model.device import DeviceInfo, Limits
from smembench.model.measurement import Trial
from smembench.model.text import one_line
from smembench.run.trial import Request, TrialRunner
from smembench.run.worker import Worker, WorkerFailed


class InProcess(Worker):
    """Open devices and trials here. A kernel that hangs hangs this process, and a fault ends its CUDA context.

    Raises:
        DeviceUnavailable: if a device does not exist.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._devices: dict[str, Device] = {name: open_device(name) for name in names}
        self.infos: dict[str, DeviceInfo] = {name: device.info for name, device in self._devices.items()}
        self.limits: dict[str, Limits] = {name: device.limits() for name, device in self._devices.items()}
        self._runner = TrialRunner(self._devices)

    def run(self, request: Request, timeout: float) -> Trial:
        """Run a trial; nothing ends one that takes longer than ``timeout``.

        Raises:
            WorkerFailed: if the kernel or the device failed.
        """
        try:
            return self._runner.run(request)
        except (Exception, SystemExit) as error:
            raise WorkerFailed(one_line(error)) from error

    def stop(self) -> None:
        """Nothing: Ctrl-C has ended the trial."""

    def wait_stopped(self, timeout: float) -> Trial | None:
        """No trial."""
        return None

    def kill(self) -> None:
        """Release the devices."""
        self.close()

    def close(self) -> None:
        """Release the devices."""
        for device in self._devices.values():
            device.close()
        self._devices = {}
