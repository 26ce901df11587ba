"""Trials put together, and figures that cannot be true."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.devices.nvml import throttle_names
from smembench.model.case import Block, Case
from smembench.model.device import DeviceInfo
from smembench.model.measurement import Conditions, Measurement, Status, Trial, merged
from smembench.model.peaks import memory_bound_gb_s, peak_gflop_s
from smembench.store.assemble import assemble

H200 = DeviceInfo(
    name="cuda:0",
    kind="cuda",
    model="NVIDIA H200",
    memory_bytes=150 * 10**9,
    compute_capability="9.0",
    sm_count=132,
    l2_bytes=60 * 2**20,
    peak_gb_s=4917.0,
    sm_clock_max_mhz=1980,
)
COPY = Case("transpose", "copyGmem", "cuda:0", "float32", 4096, 4096, None, Block(32, 32))
PRODUCT = Case("matmul", "tiled", "cuda:0", "float32", 4096, 4096, 4096, Block(32, 32))


def trial(case: Case, *samples: float, round_: int = 0, **changes: object) -> Trial:
    made = Trial(case, round_, Status.OK, "2026-01-01T00:00:00+00:00", verified=True, max_error=0.0, samples=samples)
    return replace(made, **changes)  # type: ignore[arg-type]


def measured(case: Case, *trials: Trial, info: DeviceInfo = H200) -> Measurement:
    (measurement,) = assemble([case], trials, {"cuda:0": info}, {"cuda": 0.005})
    return measurement


def test_samples_of_all_rounds_are_kept_with_their_round() -> None:
    measurement = measured(COPY, trial(COPY, 0.072, round_=1), trial(COPY, 0.070, 0.071))
    assert [(s.round, s.index, s.elapsed_ms) for s in measurement.samples] == [
        (0, 0, 0.070),
        (0, 1, 0.071),
        (1, 0, 0.072),
    ]
    assert measurement.rounds == 2
    assert measurement.summary is not None
    assert measurement.summary.median == 0.071


def test_a_round_that_ended_before_its_first_sample_does_not_count() -> None:
    assert measured(COPY, trial(COPY, 0.070), trial(COPY, round_=1), trial(COPY, 0.071, round_=2)).rounds == 2


@pytest.mark.parametrize("status", [Status.WRONG_RESULT, Status.FAILED, Status.TIMEOUT])
def test_one_bad_round_spoils_the_case_and_leaves_no_figure(status: Status) -> None:
    bad = trial(COPY, round_=1, status=status, reason="why", verified=False)
    measurement = measured(COPY, trial(COPY, *[0.07] * 10), bad, trial(COPY, *[0.07] * 10, round_=2))
    assert (measurement.status, measurement.reason, measurement.samples) == (status, "why", ())
    assert measurement.summary is None
    assert measurement.effective_gb_s is None
    assert measurement.ci_width is None


def test_convergence_is_judged_over_all_rounds() -> None:
    assert measured(COPY, trial(COPY, *[0.07] * 20)).converged
    drifting = measured(COPY, trial(COPY, *[0.07] * 10), trial(COPY, *[0.08] * 10, round_=1))
    assert drifting.converged is False
    assert drifting.ci_width == pytest.approx(0.01 / 2 / 0.075)


def test_a_bandwidth_over_the_memory_is_a_failure_and_not_a_figure() -> None:
    measurement = measured(COPY, trial(COPY, *[0.01] * 10))
    assert measurement.status is Status.FAILED
    assert measurement.reason.startswith("impossible: 13422 GB/s")
    assert measurement.samples == ()
    assert measurement.effective_gb_s is None


def test_within_the_cache_any_bandwidth_is_possible_and_marked() -> None:
    small = replace(COPY, m=1024, n=1024)
    measurement = measured(small, trial(small, *[0.001] * 10))
    assert measurement.ok
    assert measurement.within_cache
    assert not measured(COPY, trial(COPY, *[0.07] * 10)).within_cache


def test_a_flop_rate_over_the_peak_is_a_failure() -> None:
    assert peak_gflop_s("float32", H200) == pytest.approx(66908.16)
    assert peak_gflop_s("float64", H200) == pytest.approx(33454.08)
    assert measured(PRODUCT, trial(PRODUCT, *[1.0] * 10)).status is Status.FAILED
    possible = measured(PRODUCT, trial(PRODUCT, *[10.0] * 10))
    assert possible.ok
    assert possible.percent_of_peak == pytest.approx(100 * 2 * 4096**3 / 10e-3 / 66908.16e9)


def test_without_telemetry_nothing_is_refused() -> None:
    bare = DeviceInfo(name="cuda:0", model="unknown")
    measurement = measured(COPY, trial(COPY, *[0.001] * 10), info=bare)
    assert measurement.ok
    assert measurement.within_cache is measurement.percent_of_peak is None


@given(st.integers(1, 2**40))
def test_the_bound_falls_towards_the_peak_and_holds_for_what_the_bus_must_carry(size: int) -> None:
    bound = memory_bound_gb_s(size, H200)
    assert H200.l2_bytes is not None
    assert H200.peak_gb_s is not None
    if size <= H200.l2_bytes:
        assert bound is None
        return
    assert bound is not None
    assert bound >= H200.peak_gb_s
    seconds = size / (bound * 1e9)
    assert (size - H200.l2_bytes) / seconds == pytest.approx(H200.peak_gb_s * 1e9)


def test_states_are_merged_for_the_worst() -> None:
    assert merged(
        [
            Conditions(sm_clock_mhz=1980, temperature_c=40, power_w=300.0, throttle_reasons="none"),
            Conditions(sm_clock_mhz=1500, temperature_c=60, throttle_reasons="sw_thermal+hw_slowdown"),
            Conditions(sm_clock_mhz=1970, other_processes=2, throttle_reasons="sw_thermal"),
            Conditions(ecc_corrected=3, ecc_uncorrected=0, pcie_generation=1, pcie_width=16, nvlinks_up=18),
            Conditions(ecc_corrected=4, ecc_uncorrected=1, pcie_generation=5, pcie_width=8, nvlinks_up=17),
        ]
    ) == Conditions(
        sm_clock_mhz=1970,
        temperature_c=60,
        power_w=300.0,
        throttle_reasons="sw_thermal+hw_slowdown",
        other_processes=2,
        ecc_corrected=4,
        ecc_uncorrected=1,
        pcie_generation=5,
        pcie_width=8,
        nvlinks_up=17,
    )
    assert merged([]) == merged([Conditions()]) == Conditions()


@pytest.mark.parametrize(
    ("bits", "names"),
    [(0, "none"), (0x1 | 0x2, "none"), (0x4, "sw_power_cap"), (0x20 | 0x8, "hw_slowdown+sw_thermal")],
)
def test_idle_and_application_clocks_are_no_throttling(bits: int, names: str) -> None:
    assert throttle_names(bits) == names
