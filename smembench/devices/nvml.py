"""Clocks, temperature, power, memory errors and links of a GPU through NVML; all None without NVML."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from time import monotonic
from typing import Any

from smembench.model.measurement import POWER_LIMIT, Conditions

# nvmlClocksEventReason* bits; idle and application clocks do not count as throttling.
_THROTTLE_BITS = {
    0x0000000000000004: POWER_LIMIT,
    0x0000000000000008: "hw_slowdown",
    0x0000000000000010: "sync_boost",
    0x0000000000000020: "sw_thermal",
    0x0000000000000040: "hw_thermal",
    0x0000000000000080: "hw_power_brake",
}

_HEALTH_SECONDS = 2.0


def throttle_names(bits: int) -> str:
    """Names of the throttle reasons in an NVML bit mask, joined by ``+``; "none" if there are none."""
    return "+".join(name for bit, name in _THROTTLE_BITS.items() if bits & bit) or "none"


def _others(pids: list[int]) -> int:
    return len(pids) - (1 if os.getpid() in pids else min(len(pids), 1))


def lost_gpus() -> dict[int, str]:
    """GPUs that the driver counts and cannot reach, as one that fell off the bus: by NVML's index, with its error.

    CUDA does not list them. None without NVML.
    """
    try:
        import pynvml

        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except Exception:  # as in Nvml
        return {}
    lost = (
        *(pynvml.NVMLError_GpuIsLost, pynvml.NVMLError_ResetRequired),
        *(pynvml.NVMLError_IrqIssue, pynvml.NVMLError_InsufficientPower),
    )
    found: dict[int, str] = {}
    for index in range(count):
        try:
            pynvml.nvmlDeviceGetHandleByIndex(index)
        except lost as error:
            found[index] = str(error)
        except Exception:  # one that this process may not see
            continue
    return found


class Nvml:
    """A GPU in NVML, found by UUID because NVML ignores CUDA_VISIBLE_DEVICES."""

    def __init__(self, uuid: str) -> None:
        self._nvml: Any = None
        self._nvlinks: list[int] = []
        self._health: dict[str, Any] = {}
        self._asked = -math.inf
        try:
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            self._nvml = pynvml
        except Exception:  # no NVML, no driver or no permission: telemetry is then absent, never an error
            return
        self._nvlinks = [link for link in range(pynvml.NVML_NVLINK_MAX_LINKS) if self._nvlink(link) is not None]

    def _ask(self, question: Callable[[Any, Any], Any]) -> Any:
        if self._nvml is None:
            return None
        try:
            return question(self._nvml, self._handle)
        except Exception:  # NVML's errors, and pynvml's if the driver is older than it
            return None

    def _nvlink(self, link: int) -> Any:
        """1 for an NVLink that is up, 0 for one that is down, None for one that the GPU does not have."""
        return self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetNvLinkState(gpu, link))

    def _memory_errors(self, kind: str) -> Any:
        """Errors since the driver was loaded."""
        return self._ask(
            lambda nvml, gpu: nvml.nvmlDeviceGetTotalEccErrors(
                gpu, getattr(nvml, f"NVML_MEMORY_ERROR_TYPE_{kind}"), nvml.NVML_VOLATILE_ECC
            )
        )

    def conditions(self) -> Conditions:
        """The GPU's state now."""
        power = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu))
        processes = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetComputeRunningProcesses(gpu))
        bits = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu))
        return Conditions(
            sm_clock_mhz=self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM)),
            memory_clock_mhz=self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_MEM)),
            temperature_c=self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
            power_w=None if power is None else power / 1000,
            throttle_reasons=None if bits is None else throttle_names(bits),
            # In a container NVML may report other ids than getpid; then one process is assumed to be this one.
            other_processes=None if processes is None else _others([process.pid for process in processes]),
            **self._health_now(),
        )

    def _health_now(self) -> dict[str, Any]:
        """Memory errors and links, by the names of ``Conditions``; at most _HEALTH_SECONDS old.

        They are some 20 questions, too many to ask between samples, and change seldom.
        """
        if monotonic() - self._asked > _HEALTH_SECONDS:
            self._health = {
                "ecc_corrected": self._memory_errors("CORRECTED"),
                "ecc_uncorrected": self._memory_errors("UNCORRECTED"),
                "pcie_generation": self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkGeneration(gpu)),
                "pcie_width": self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetCurrPcieLinkWidth(gpu)),
                "nvlinks_up": sum(self._nvlink(link) or 0 for link in self._nvlinks) if self._nvlinks else None,
            }
            self._asked = monotonic()
        return self._health

    def settings(self) -> dict[str, Any]:
        """Driver, clock and power limits, ECC, MIG and links, by the names of ``DeviceInfo``."""

        def clock(kind: str) -> Any:
            return self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetMaxClockInfo(gpu, getattr(nvml, kind)))

        power = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu))
        ecc = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetEccMode(gpu)[0])
        mig = self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetMigMode(gpu)[0])
        return {
            "driver": self._ask(lambda nvml, gpu: nvml.nvmlSystemGetDriverVersion()),
            "sm_clock_max_mhz": clock("NVML_CLOCK_SM"),
            "memory_clock_max_mhz": clock("NVML_CLOCK_MEM"),
            "power_limit_w": None if power is None else power / 1000,
            "ecc": None if ecc is None else bool(ecc),
            "mig": None if mig is None else bool(mig),
            "pcie_generation_max": self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu)),
            "pcie_width_max": self._ask(lambda nvml, gpu: nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu)),
            "nvlinks": len(self._nvlinks) or None,
        }
