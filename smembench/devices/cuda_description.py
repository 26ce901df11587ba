"""Properties of a GPU from the driver and NVML, without creating a context."""

from __future__ import annotations

from cuda.bindings import driver

from smembench.devices.nvml import Nvml
from smembench.kernels.driver import checked
from smembench.model.device import DeviceInfo

_NAME_BYTES = 256


def attribute(index: int, name: str) -> int:
    """A device attribute by its CUDA name, such as ``MULTIPROCESSOR_COUNT``."""
    which = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(checked(driver.cuDeviceGetAttribute(which, checked(driver.cuDeviceGet(index)))))


def compute_capability(index: int) -> str:
    """Such as ``9.0``."""
    return ".".join(str(attribute(index, f"COMPUTE_CAPABILITY_{part}")) for part in ("MAJOR", "MINOR"))


def model(index: int) -> str:
    """The name of a GPU; that of an instance of one in MIG mode has ``MIG`` in it."""
    device = checked(driver.cuDeviceGet(index))
    return bytes(checked(driver.cuDeviceGetName(_NAME_BYTES, device))).partition(b"\0")[0].decode()


def describe(index: int, uuid: str, nvml: Nvml) -> DeviceInfo:
    """The GPU with that index and UUID; the driver must be initialised."""
    device = checked(driver.cuDeviceGet(index))
    version = checked(driver.cuDriverGetVersion())
    settings = nvml.settings()
    # NVML gives the clock at which the memory runs; CUDA's attribute can be lower.
    memory_mhz = settings["memory_clock_max_mhz"] or attribute(index, "MEMORY_CLOCK_RATE") / 1000
    return DeviceInfo(
        name=f"cuda:{index}",
        kind="cuda",
        model=model(index),
        memory_bytes=int(checked(driver.cuDeviceTotalMem(device))),
        uuid=uuid,
        compute_capability=compute_capability(index),
        sm_count=attribute(index, "MULTIPROCESSOR_COUNT"),
        l2_bytes=attribute(index, "L2_CACHE_SIZE"),
        peak_gb_s=2 * memory_mhz * attribute(index, "GLOBAL_MEMORY_BUS_WIDTH") / 8 / 1000 or None,
        cuda=f"{version // 1000}.{version % 1000 // 10}",
        **settings,
    )
