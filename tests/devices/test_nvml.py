"""Telemetry where there is none, and where NVML refuses a question."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from smembench.devices import nvml as telemetry
from smembench.devices.nvml import Nvml
from smembench.model.measurement import Conditions


class Refused(Exception):
    """What the made-up NVML raises."""


def nvml(**answers: Any) -> SimpleNamespace:
    """An NVML that knows these answers and refuses every other question."""

    def refuse(*_: object) -> None:
        raise Refused

    questions = re.findall(r"\bnvml(?:Device|System)Get\w+", Path(telemetry.__file__).read_text(encoding="utf-8"))
    constants = {"NVML_CLOCK_SM": 1, "NVML_CLOCK_MEM": 2, "NVML_TEMPERATURE_GPU": 0, "NVMLError": Refused}
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
