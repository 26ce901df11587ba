"""Properties of a GPU from the driver and NVML, without creating a context."""

from __future__ import annotations

from uuid import UUID

from cuda.bindings import driver
from cuda.pathfinder import DynamicLibNotFoundError

from smembench.devices.nvml import Nvml
from smembench.kernels.driver import checked, latest
from smembench.model.device import DeviceInfo
from smembench.model.errors import DeviceUnavailable
from smembench.model.text import number_of
from smembench.toolchains.settings import settings

_NAME_BYTES = 256


def why_unusable() -> str | None:
    """The reason, in one line, why no GPU can be used here; None if one can."""
    if "NUMBA_ENABLE_CUDASIM" in settings():  # Numba itself takes longer to import than the driver
        return "NUMBA_ENABLE_CUDASIM is set, and the simulator's times say nothing of a GPU; unset it"
    try:
        checked(driver.cuInit(0))
        return None if checked(driver.cuDeviceGetCount()) else "no CUDA device was found"
    except DynamicLibNotFoundError:
        return "no CUDA driver was found; without NVIDIA's driver only the CPU is measured"
    except RuntimeError as error:
        return str(error)


def gpu_count() -> int:
    """The number of usable GPUs that CUDA sees."""
    return 0 if why_unusable() else int(checked(driver.cuDeviceGetCount()))


def check_gpu(index: int) -> None:
    """Check that there is a usable GPU with an index.

    Raises:
        DeviceUnavailable: if there is none.
    """
    if reason := why_unusable():
        raise DeviceUnavailable(f"device cuda:{index}: {reason} (see: smembench doctor)")
    if index >= (count := gpu_count()):
        raise DeviceUnavailable(f"device cuda:{index}: found {number_of(count, 'GPU')}, counted from cuda:0")


def gpu_uuid(index: int) -> str | None:
    """The UUID of a GPU or of a MIG instance as NVML writes it, without creating a context; None without such a GPU."""
    if index >= gpu_count():
        return None
    uuid = checked(latest("cuDeviceGetUuid")(checked(driver.cuDeviceGet(index))))
    return f"{'MIG' if ' MIG ' in model(index) else 'GPU'}-{UUID(bytes=bytes(uuid.bytes))}"


def gpu_info(index: int) -> DeviceInfo | None:
    """A GPU's properties, without creating a context; None if there is no such GPU."""
    uuid = gpu_uuid(index)
    return None if uuid is None else describe(index, uuid, Nvml(uuid))


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
