"""Names of devices as users write them (auto, cuda:1, GPU-1a2b, MIG-1a2b, cpu), and the devices they stand for."""

from __future__ import annotations

import re

from smembench.devices.base import Device
from smembench.model.errors import DeviceUnavailable, UsageError
from smembench.model.text import one_line

AUTO = "auto"
CPU = "cpu"


def canonical(name: str) -> str:
    """The full name of a device: ``cuda`` is ``cuda:0``; a GPU's UUID, or how it begins, stays as it is.

    Raises:
        UsageError: for anything but auto, cpu, cuda, cuda:<index>, GPU-<UUID> and MIG-<UUID>.
    """
    written = str(name).strip()  # from Python it may be anything
    name = written.lower()
    if name in (AUTO, CPU) or re.fullmatch(r"(gpu|mig)-[0-9a-f][0-9a-f-]*", name):
        return name
    match = re.fullmatch(r"cuda(?::([0-9]{1,4}))?", name)
    if match is None:
        raise UsageError(f"device {written!r}: no such device; write auto, cuda, cuda:1, GPU-1a2b…, MIG-1a2b… or cpu")
    return f"cuda:{int(match[1] or 0)}"


def resolve(name: str) -> tuple[str, str | None]:
    """The device that a name stands for, and a note for the user where ``auto`` is the CPU.

    Raises:
        DeviceUnavailable: for a UUID that no GPU here has, or several.
    """
    name = canonical(name)
    if name.startswith(("gpu-", "mig-")):
        return _of_uuid(name), None
    if name != AUTO:
        return name, None
    from smembench.devices.cuda_description import why_unusable

    if why_unusable():
        return CPU, "no GPU is usable, so this runs on the CPU (see: smembench doctor)"
    return "cuda:0", None


def check_usable(name: str) -> None:
    """Check that the device that a name stands for is there, without opening it.

    Raises:
        DeviceUnavailable: for a GPU that is not there or cannot be used.
    """
    device, _ = resolve(name)
    if device != CPU:
        from smembench.devices.cuda_description import check_gpu

        check_gpu(_index(device))


def _of_uuid(name: str) -> str:
    from smembench.devices.cuda_description import gpu_count, gpu_uuid

    uuids = [gpu_uuid(index) or "" for index in range(gpu_count())]
    matches = [f"cuda:{index}" for index, uuid in enumerate(uuids) if uuid.lower().startswith(name)]
    if len(matches) != 1:
        several = "several GPUs have it" if matches else "no GPU here has it"
        raise DeviceUnavailable(f"device {name}: {several} (there are: {', '.join(uuids) or 'none'})")
    return matches[0]


def uuid_of(name: str) -> str | None:
    """The UUID of a GPU, found without opening it; None for the CPU and if there is no such GPU."""
    if name == CPU:
        return None
    from smembench.devices.cuda_description import gpu_uuid

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
