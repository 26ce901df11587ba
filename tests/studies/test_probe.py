"""The data sheet: what its figures are made of, without a GPU."""

from __future__ import annotations

import json
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_driver.process import FakeDriver, ended
from smembench.explain.banks import wavefronts
from smembench.kernels.program import CudaCKernel
from smembench.model.measurement import Status
from smembench.studies.probe import FAMILIES
from smembench.studies.probe.atomics import targets
from smembench.studies.probe.carveout import resident
from smembench.studies.probe.conflicts import words
from smembench.studies.probe.constant import edge
from smembench.studies.probe.figure import Figure, Unverified
from smembench.studies.probe.latency import partitions
from smembench.studies.probe.matrices import called
from smembench.studies.probe.timing import per_load, shuffled
from smembench.toolchains.nvrtc import TOOLCHAIN, compiled


@pytest.mark.skipif(TOOLCHAIN.unavailable() is not None, reason="NVRTC is not installed")
@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_source_compiles_where_it_has_figures(family: str, capability: tuple[int, int]) -> None:
    from cuda.bindings import nvrtc

    module = import_module(f"smembench.studies.probe.{family}")
    major, minor = capability
    _, known = nvrtc.nvrtcGetSupportedArchs()
    if capability < module.CAPABILITY or 10 * major + minor not in known:
        pytest.skip(f"{family} needs {module.CAPABILITY}, this NVRTC compiles for {known}")
    kernel = CudaCKernel(source=module.SOURCE, entry="", grid=(1, 1), block=(1, 1))
    assert bytes(compiled(kernel, f"{major}.{minor}").code).startswith(b"\x7fELF")


@pytest.mark.slow
def test_every_family_finds_that_its_kernels_did_nothing(fake_driver: FakeDriver) -> None:
    """On a fake driver, whose kernels without a host form leave the output as it was poisoned."""
    out, _ = ended(fake_driver("smembench", "probe", "--processes", "1", "--json"), 1)
    figures = json.loads(out)["figures"]
    assert {figure["family"]: figure["status"] for figure in figures} == dict.fromkeys(FAMILIES, "wrong_result")


def test_a_figure_is_the_median_with_its_interval() -> None:
    figure = Figure.of("shared memory", "cycles", [*range(1, 16)], "dependent loads")
    assert (figure.low, figure.value, figure.high) == (4, 8, 12)
    assert figure.status is Status.OK
    assert Figure.missing("clusters", Status.SKIPPED, "not on this device").value is None


@pytest.mark.parametrize("n", range(1, 33))
def test_lanes_have_an_n_way_conflict(n: int) -> None:
    assert wavefronts([4 * int(word) for word in words(n)], 4, "load") == n


def test_lanes_contend_for_a_word_a_bank_or_nothing() -> None:
    def by_warp(contention: str) -> list[int]:
        result = targets(contention, 1024).reshape(-1, 32)
        return [wavefronts([4 * int(word) for word in warp], 4, "load") for warp in result]

    assert by_warp("one bank") == [32] * 32
    assert by_warp("own words") == by_warp("one word") == [1] * 32
    assert len(set(targets("one word", 1024))) == 1
    assert len(set(targets("one bank", 1024))) == len(set(targets("own words", 1024))) == 1024


def test_a_chain_visits_every_node_and_tells_a_wrong_end() -> None:
    chain = shuffled(100, 64)
    assert sorted(chain) == list(range(0, 6400, 64))
    end = int(chain[(10 + 3 * 32) % 100])
    result = np.array([960, end, 1920, end])
    assert per_load(result, chain[np.newaxis], 10, 32).tolist() == [30, 60]
    with pytest.raises(Unverified, match="the number of chains with a wrong end is 1, not 0"):
        per_load(result + np.array([0, 0, 0, 64]), chain[np.newaxis], 10, 32)


def test_an_edge_is_the_last_size_before_latency_rises() -> None:
    assert edge({64: 20.0, 128: 20.5, 192: 20.1, 256: 31.0, 320: 20.0}) == 192
    assert edge({64: 20.0, 128: 20.5}) is None


def latencies(far: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Of 12 SMs and 64 addresses, half of each in either partition, with slices at different distances."""
    rng = np.random.default_rng(1)
    sides = rng.permutation(12) % 2, rng.permutation(64) % 2
    near: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = np.equal.outer(*sides)
    return 250 + rng.normal(0, 6, 12)[:, np.newaxis] + rng.normal(0, 6, 64) + rng.normal(0, 1, near.shape) + far * ~near


def test_partitions_of_the_l2_are_told_apart_by_sms_and_addresses_together() -> None:
    near, far = partitions(latencies(30.0))
    assert len(near) == len(far) == 12 * 64 / 2
    assert np.median(far) - np.median(near) == pytest.approx(30, abs=5)


def test_an_l2_of_one_partition_has_one_latency() -> None:
    (whole,) = partitions(latencies(0.0))
    assert whole.shape == (12 * 64,)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 20)), min_size=1))
def test_resident_blocks_are_the_most_that_were_there_at_a_time(stays: list[tuple[int, int, int]]) -> None:
    blocks = np.array([(sm, came, came + stayed + 1) for sm, came, stayed in stays])
    most = [
        max(sum(came <= time < left for _, came, left in blocks[blocks[:, 0] == sm]) for time in range(42))
        for sm in sorted({sm for sm, _, _ in stays})
    ]
    assert resident(blocks).tolist() == most


@pytest.mark.parametrize(
    ("instruction", "form", "pitch", "name"),
    [
        ("ldmatrix", "x4", 16, "ldmatrix.x4"),
        ("ldmatrix", "x1", 128, "ldmatrix.x1, 8-way conflicts"),
        ("stmatrix", "x4.trans", 144, "stmatrix.x4.trans"),
        ("stmatrix", "x2", 64, "stmatrix.x2, 4-way conflicts"),
    ],
)
def test_rows_of_matrices_conflict_like_lanes_of_16_bytes(instruction: str, form: str, pitch: int, name: str) -> None:
    assert called(instruction, form, pitch) == name
