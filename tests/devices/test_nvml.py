"""Telemetry where there is none, and where NVML refuses a question."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from smembench.devices import nvml as telemetry
from smembench.devices.nvml import Nvml, lost_gpus, throttle_names
from smembench.model.measurement import Conditions


class Refused(Exception):
    """What the made-up NVML raises."""


def nvml(**answers: Any) -> SimpleNamespace:
    """An NVML that knows these answers and refuses every other question."""

    def refuse(*_: object) -> None:
        raise Refused

    questions = re.findall(r"\bnvml(?:Device|System)Get\w+", Path(telemetry.__file__).read_text(encoding="utf-8"))
    constants = {"NVML_CLOCK_SM": 1, "NVML_CLOCK_MEM": 2, "NVML_TEMPERATURE_GPU": 0, "NVMLError": Refused}
    constants |= {
        "NVML_MEMORY_ERROR_TYPE_CORRECTED": 0,
        "NVML_MEMORY_ERROR_TYPE_UNCORRECTED": 1,
        "NVML_VOLATILE_ECC": 0,
    }
    constants |= {"NVML_NVLINK_MAX_LINKS": 36}
    known = {"nvmlInit": lambda: None, "nvmlDeviceGetHandleByUUID": lambda uuid: uuid}
    return SimpleNamespace(**{**dict.fromkeys(questions, refuse), **constants, **known, **answers})


def test_without_nvml_every_value_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert Nvml("GPU-1").conditions() == Conditions()
    assert set(Nvml("GPU-1").settings().values()) == {None}


def test_an_error_of_pynvml_itself_is_no_error_of_the_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """It raises one for a driver that is older than it, beside those of NVML."""

    def mismatch(gpu: object) -> None:
        raise TypeError

    made_up = nvml(nvmlDeviceGetComputeRunningProcesses=mismatch, nvmlDeviceGetPowerUsage=lambda gpu: 5000)
    monkeypatch.setitem(sys.modules, "pynvml", made_up)
    assert Nvml("GPU-1").conditions() == Conditions(power_w=5)


def test_a_refused_question_leaves_its_value_absent_and_the_others_there(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "nvmlDeviceGetPowerUsage": lambda gpu: 123_456,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda gpu: 0x4,
        "nvmlDeviceGetClockInfo": lambda gpu, kind: {1: 1980, 2: 3201}[kind],
        "nvmlDeviceGetComputeRunningProcesses": lambda gpu: [SimpleNamespace(pid=pid) for pid in (-1, -2)],
    }
    monkeypatch.setitem(sys.modules, "pynvml", nvml(**answers))
    state = Nvml("GPU-1").conditions()
    assert state == Conditions(
        sm_clock_mhz=1980, memory_clock_mhz=3201, power_w=123.456, throttle_reasons="sw_power_cap", other_processes=1
    )
    assert state.disturbed


def test_the_links_that_a_gpu_has_are_counted_and_those_that_are_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links that a GPU lacks are refused, also between others."""
    up = {0: 1, 1: 1, 2: 0, 5: 1}

    def state(gpu: object, link: int) -> int:
        if link not in up:
            raise Refused
        return up[link]

    answers = {
        "nvmlDeviceGetNvLinkState": state,
        "nvmlDeviceGetCurrPcieLinkGeneration": lambda gpu: 4,
        "nvmlDeviceGetMaxPcieLinkGeneration": lambda gpu: 5,
        "nvmlDeviceGetCurrPcieLinkWidth": lambda gpu: 8,
        "nvmlDeviceGetMaxPcieLinkWidth": lambda gpu: 16,
    }
    monkeypatch.setitem(sys.modules, "pynvml", nvml(**answers))
    gpu = Nvml("GPU-1")
    assert gpu.conditions() == Conditions(pcie_generation=4, pcie_width=8, nvlinks_up=3)
    known = {name: value for name, value in gpu.settings().items() if value is not None}
    assert known == {"pcie_generation_max": 5, "pcie_width_max": 16, "nvlinks": 4}


def test_memory_errors_are_those_since_the_driver_was_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"nvmlDeviceGetTotalEccErrors": lambda gpu, kind, since: {(0, 0): 7, (1, 0): 0}[kind, since]}
    monkeypatch.setitem(sys.modules, "pynvml", nvml(**answers))
    assert Nvml("GPU-1").conditions() == Conditions(ecc_corrected=7, ecc_uncorrected=0)


def test_a_gpu_that_fell_off_the_bus_is_lost_and_one_without_permission_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    import pynvml

    def handle(index: int) -> int:
        if index:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST if index == 2 else pynvml.NVML_ERROR_NO_PERMISSION)
        return index

    answers = {"nvmlInit": lambda: None, "nvmlDeviceGetCount": lambda: 3, "nvmlDeviceGetHandleByIndex": handle}
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
    assert {index: bool(error) for index, error in lost_gpus().items()} == {2: True}


def test_without_nvml_no_gpu_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert lost_gpus() == {}


def test_memory_errors_are_not_asked_for_between_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, now = [], [100.0]

    def errors(gpu: object, kind: int, since: int) -> int:
        asked.append(kind)
        return len(asked)

    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlDeviceGetTotalEccErrors=errors))
    monkeypatch.setattr("smembench.devices.nvml.monotonic", lambda: now[0])
    gpu = Nvml("GPU-1")
    first = gpu.conditions()
    now[0] += 1
    assert gpu.conditions() == first
    now[0] += 2
    assert gpu.conditions() == Conditions(ecc_corrected=3, ecc_uncorrected=4)


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (0x4, "sw_power_cap"),
        (0x8, "hw_slowdown"),
        (0x10, "sync_boost"),
        (0x20, "sw_thermal"),
        (0x40, "hw_thermal"),
        (0x80, "hw_power_brake"),
        (0x44, "sw_power_cap+hw_thermal"),
        (0x1 | 0x2 | 0x100, "none"),  # idle, clocks that the user or the display asked for
    ],
)
def test_every_reason_that_lowers_clocks_is_throttling_and_rest_is_none(bits: int, names: str) -> None:
    """The bits are those of nvml.h, nvmlClocksEventReason*."""
    assert throttle_names(bits) == names
    assert Conditions(throttle_reasons=throttle_names(bits)).throttled is (names != "none")
