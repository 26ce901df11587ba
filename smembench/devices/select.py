"""Names of devices as users write them (auto, cuda, cuda:1, cpu), and the devices they stand for."""

from __future__ import annotations

import re

from smembench.devices.base import Device
from smembench.model.errors import DeviceUnavailable, UsageError
from smembench.model.text import one_line

AUTO = "auto"
CPU = "cpu"


def canonical(name: str) -> str:
    """The full name of a device: ``cuda`` is ``cuda:0``.

    Raises:
        UsageError: for anything but auto, cpu, cuda and cuda:<index>.
    """
    name = name.strip().lower()
    if name in (AUTO, CPU):
        return name
    match = re.fullmatch(r"cuda(?::([0-9]{1,4}))?", name)
    if match is None:
        raise UsageError(f"device {name!r}: no such device; write auto, cuda, cuda:1 or cpu")
    return f"cuda:{int(match[1] or 0)}"


def resolve(name: str) -> tuple[str, str | None]:
    """The device that a name stands for, and a note for the user where ``auto`` is the CPU."""
    name = canonical(name)
    if name != AUTO:
        return name, None
    from smembench.devices.cuda import why_unusable

    if why_unusable():
        return CPU, "no GPU is usable, so this runs on the CPU (see: smembench doctor)"
    return "cuda:0", None


def uuid_of(name: str) -> str | None:
    """The UUID of a GPU, found without opening it; None for the CPU and if there is no such GPU."""
    if name == CPU:
        return None
    from smembench.devices.cuda import gpu_uuid

    return gpu_uuid(_index(name))


def _index(name: str) -> int:
    return int(name.partition(":")[2])


def open_device(name: str) -> Device:
    """Open the device with a canonical name.

    Raises:
        DeviceUnavailable: if there is no such device, and with CUDA's error if it cannot be used.
        Exception: that of a library that cannot be imported, or of a mistake here.
    """
    if name == CPU:
        from smembench.devices.cpu import CpuDevice

        return CpuDevice()
    from smembench.devices.cuda import CudaDevice

    try:
        return CudaDevice(_index(name))
    except Exception as error:
        if not (isinstance(error, RuntimeError) or type(error).__module__.startswith("cuda.")):
            raise
        raise DeviceUnavailable(f"{name}: {one_line(error)}") from None
