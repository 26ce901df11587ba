"""Clocks, temperature, power, memory errors and links of a GPU through NVML; all None without NVML."""

from __future__ import annotations

import math
import os
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
    errors: dict[int, str] = {}
    for index in range(count):
        try:
            pynvml.nvmlDeviceGetHandleByIndex(index)
        except lost as error:
            errors[index] = str(error)
        except Exception:  # one that this process may not see
            continue
    return errors


class Nvml:
    """A GPU in NVML, found by its UUID or a MIG instance's because NVML ignores CUDA_VISIBLE_DEVICES."""

    def __init__(self, uuid: str) -> None:
        self._nvml: Any = None
        self._instance = uuid.startswith("MIG-")
        self._nvlinks: list[int] = []
        self._health: dict[str, Any] = {}
        self._asked = -math.inf
        try:
            import pynvml

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            if self._instance:  # clocks, power and links are the whole GPU's
                self._handle = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self._handle)
            self._nvml = pynvml
        except Exception:  # no NVML, no driver or no permission: telemetry is then absent, never an error
            return
        self._nvlinks = [link for link in range(pynvml.NVML_NVLINK_MAX_LINKS) if self._nvlink(link) is not None]

    def _ask(self, function: str, *arguments: int | str, of_gpu: bool = True) -> Any:
        """The answer of a function of NVML for this GPU; texts are names of NVML's constants. None if it fails."""
        if self._nvml is None:
            return None
        try:
            given = [getattr(self._nvml, argument) if isinstance(argument, str) else argument for argument in arguments]
            return getattr(self._nvml, function)(*([self._handle] if of_gpu else []), *given)
        except Exception:  # NVML's errors, and pynvml's if the driver is older than it
            return None

    def _nvlink(self, link: int) -> Any:
        """1 for an NVLink that is up, 0 for one that is down, None for one that the GPU does not have."""
        return self._ask("nvmlDeviceGetNvLinkState", link)

    def _memory_errors(self, kind: str) -> Any:
        """Errors since the driver was loaded."""
        return self._ask("nvmlDeviceGetTotalEccErrors", f"NVML_MEMORY_ERROR_TYPE_{kind}", "NVML_VOLATILE_ECC")

    def conditions(self) -> Conditions:
        """The GPU's state now."""
        power, bits = self._ask("nvmlDeviceGetPowerUsage"), self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        processes = self._ask("nvmlDeviceGetComputeRunningProcesses")
        return Conditions(
            sm_clock_mhz=self._ask("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"),
            memory_clock_mhz=self._ask("nvmlDeviceGetClockInfo", "NVML_CLOCK_MEM"),
            temperature_c=self._ask("nvmlDeviceGetTemperature", "NVML_TEMPERATURE_GPU"),
            power_w=None if power is None else power / 1000,
            throttle_reasons=None if bits is None else throttle_names(bits),
            # In a container NVML may report other ids than getpid; then one process is assumed to be this one.
            other_processes=None if processes is None else _others([process.pid for process in processes]),
            energy_j=self._energy_j(),
            **self._health_now(),
        )

    def _energy_j(self) -> float | None:
        """Energy that the GPU took since the driver was loaded; None of a MIG instance, which has a part of it."""
        millijoules = None if self._instance else self._ask("nvmlDeviceGetTotalEnergyConsumption")
        return None if millijoules is None else millijoules / 1000

    def _health_now(self) -> dict[str, Any]:
        """Memory errors and links, by the names of ``Conditions``; at most _HEALTH_SECONDS old.

        They are some 20 questions, too many to ask between samples, and change seldom.
        """
        if monotonic() - self._asked > _HEALTH_SECONDS:
            self._health = {
                "ecc_corrected": self._memory_errors("CORRECTED"),
                "ecc_uncorrected": self._memory_errors("UNCORRECTED"),
                "pcie_generation": self._ask("nvmlDeviceGetCurrPcieLinkGeneration"),
                "pcie_width": self._ask("nvmlDeviceGetCurrPcieLinkWidth"),
                "nvlinks_up": sum(self._nvlink(link) or 0 for link in self._nvlinks) if self._nvlinks else None,
            }
            self._asked = monotonic()
        return self._health

    def settings(self) -> dict[str, Any]:
        """Driver, clock and power limits, ECC, MIG and links, by the names of ``DeviceInfo``."""
        power = self._ask("nvmlDeviceGetEnforcedPowerLimit")
        ecc, mig = self._ask("nvmlDeviceGetEccMode"), self._ask("nvmlDeviceGetMigMode")
        return {
            "driver": self._ask("nvmlSystemGetDriverVersion", of_gpu=False),
            "sm_clock_max_mhz": self._ask("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
            "memory_clock_max_mhz": self._ask("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"),
            "power_limit_w": None if power is None else power / 1000,
            "ecc": None if ecc is None else bool(ecc[0]),
            "mig": None if mig is None else bool(mig[0]),
            "pcie_generation_max": self._ask("nvmlDeviceGetMaxPcieLinkGeneration"),
            "pcie_width_max": self._ask("nvmlDeviceGetMaxPcieLinkWidth"),
            "nvlinks": len(self._nvlinks) or None,
        }
