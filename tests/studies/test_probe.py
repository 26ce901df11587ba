"""The data sheet: what its figures are made of, without a GPU."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from smembench.explain.banks import wavefronts
from smembench.kernels.program import CudaCKernel
from smembench.model.measurement import Status
from smembench.studies.probe import FAMILIES
from smembench.studies.probe.atomics import targets
from smembench.studies.probe.conflicts import words
from smembench.studies.probe.constant import edge
from smembench.studies.probe.figure import Figure, Unverified
from smembench.studies.probe.latency import partitions
from smembench.studies.probe.timing import per_load, shuffled
from smembench.toolchains.nvrtc import TOOLCHAIN, compiled


@pytest.mark.skipif(TOOLCHAIN.unavailable() is not None, reason="NVRTC is not installed")
@pytest.mark.parametrize("capability", ["8.0", "9.0"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_source_compiles(family: str, capability: str) -> None:
    kernel = CudaCKernel(
        source=import_module(f"smembench.studies.probe.{family}").SOURCE, entry="", grid=(1, 1), block=(1, 1)
    )
    assert bytes(compiled(kernel, capability).code).startswith(b"\x7fELF")


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
        found = targets(contention, 1024).reshape(-1, 32)
        return [wavefronts([4 * int(word) for word in warp], 4, "load") for warp in found]

    assert by_warp("one bank") == [32] * 32
    assert by_warp("own words") == by_warp("one word") == [1] * 32
    assert len(set(targets("one word", 1024))) == 1
    assert len(set(targets("one bank", 1024))) == len(set(targets("own words", 1024))) == 1024


def test_a_chain_visits_every_node_and_tells_a_wrong_end() -> None:
    chain = shuffled(100, 64)
    assert sorted(chain) == list(range(0, 6400, 64))
    end = int(chain[(10 + 3 * 32) % 100])
    found = np.array([960, end, 1920, end])
    assert per_load(found, chain[np.newaxis], 10, 32).tolist() == [30, 60]
    with pytest.raises(Unverified, match="the number of chains with a wrong end is 1, not 0"):
        per_load(found + np.array([0, 0, 0, 64]), chain[np.newaxis], 10, 32)


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
