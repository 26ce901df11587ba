"""GPUs by their data sheets: numbers that fit each other, and names as people write them."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from smembench.explain.occupancy import CAPABILITIES
from smembench.explain.roof import ON_CHIP, Work, roofs
from smembench.model.data_sheets import DataSheet, data_sheet, data_sheets
from smembench.model.errors import UsageError
from smembench.model.peaks import flops_per_clock, peak_gflop_s

SHEETS = [*data_sheets().values()]


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: str(sheet.name))
def test_the_numbers_of_a_row_fit_each_other(sheet: DataSheet) -> None:
    assert sheet.compute_capability in CAPABILITIES
    assert re.search(r"NVIDIA .*\(20\d\d\)", sheet.source)
    assert sheet.sm_count
    if sheet.sm_clock_max_mhz:  # float32 by lanes per clock, as the programming guide has them
        rate = flops_per_clock("float32", sheet.compute_capability)
        assert rate
        computed = rate * sheet.sm_count * sheet.sm_clock_max_mhz / 1e6
        assert sheet.tflops["float32"] == pytest.approx(computed, rel=0.006)
    tensor = [sheet.tflops[dtype] for dtype in ("tf32", "float16", "float8_e4m3") if dtype in sheet.tflops]
    for slower, faster in pairwise(tensor):
        assert 1.9 < faster / slower < 2.1
    assert sheet.tflops.get("bfloat16", sheet.tflops["float16"]) == sheet.tflops["float16"]


def test_rates_of_gpus_without_a_row_fit_what_nvidia_publishes() -> None:
    b300 = [flops_per_clock(dtype, "10.3") or 0 for dtype in ("float32", "float64")]
    assert b300[0] / b300[1] == pytest.approx(75 / 1.25, rel=0.07)  # TFLOPS, rounded
    assert flops_per_clock("float32", "12.1") == 2 * 6144 / 48  # cores, multiprocessors
    assert flops_per_clock("float64", "12.1") is None


@pytest.mark.parametrize("name", ["rtx4090", "RTX 4090", "RTX-4090"])
def test_names_are_found_as_people_write_them(name: str) -> None:
    sheet = data_sheet(name)
    assert (sheet.model, sheet.compute_capability) == ("NVIDIA GeForce RTX 4090", "8.9")


def test_an_unknown_name_lists_the_known() -> None:
    assert data_sheet("H100 SXM5") is data_sheet("h100")
    with pytest.raises(UsageError, match=r"--gpu geforce: is not among .*a100, .*rtx5090; give --cc"):
        data_sheet("geforce")


def test_roofs_are_those_of_the_sheet() -> None:
    l4 = data_sheet("l4")
    assert peak_gflop_s("float16", l4) == 121_000
    assert peak_gflop_s("float64", l4) is None
    memory, on_chip, arithmetic = roofs(Work("float32", 300, 1, 303), l4)
    assert memory.milliseconds == pytest.approx(1e-6)
    assert arithmetic.milliseconds == pytest.approx(1e-8)
    assert (on_chip.name, on_chip.peak) == (ON_CHIP, 128 * 58 * 2040e6)
