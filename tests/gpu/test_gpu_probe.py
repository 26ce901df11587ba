"""On a real GPU: the data sheet's figures are those of a GPU."""

from __future__ import annotations

import pytest

from smembench.devices.cuda import CudaDevice
from smembench.devices.cuda_description import why_unusable
from smembench.model.hardware import BANKS, WORD_BYTES
from smembench.model.measurement import Status
from smembench.studies.probe import FAMILIES, probe
from smembench.studies.probe.bench import Bench
from smembench.studies.probe.figure import Figure

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]


@pytest.fixture(scope="module")
def sheet(gpu: CudaDevice) -> dict[tuple[str, str], Figure]:
    return {(figure.family, figure.name): figure for figure in probe(Bench(gpu))}


def value(figure: Figure) -> float:
    assert figure.value is not None
    return figure.value


def test_every_family_has_figures_or_is_not_on_this_device(sheet: dict[tuple[str, str], Figure]) -> None:
    assert {family for family, _ in sheet} == set(FAMILIES)
    for figure in sheet.values():
        assert figure.status in (Status.OK, Status.SKIPPED), figure
        if figure.status is Status.OK:
            assert figure.low is not None
            assert figure.high is not None
            assert figure.low <= value(figure) <= figure.high


def test_what_is_farther_away_takes_longer(sheet: dict[tuple[str, str], Figure]) -> None:
    names = ("shared memory", "L1 cache", "global memory")
    shared, l1, memory = (value(sheet["latency", name]) for name in names)
    assert 10 < shared < l1 < memory < 2000
    for name in ("L2 cache", "L2 cache, near", "L2 cache, far"):
        if result := sheet.get(("latency", name)):
            assert l1 < value(result) < memory
    assert value(sheet["constant", "L1 cache"]) < value(sheet["constant", "L1.5 cache"])


def test_bandwidth_is_near_that_of_the_banks(sheet: dict[tuple[str, str], Figure]) -> None:
    for bits in (32, 64, 128):
        for what in ("loads", "stores"):
            assert 0.95 < value(sheet["bandwidth", f"{bits}-bit {what}"]) / (BANKS * WORD_BYTES) <= 1


def test_an_n_way_conflict_costs_n(sheet: dict[tuple[str, str], Figure]) -> None:
    for n in (2, 3, 4, 8, 16, 32):
        assert value(sheet["conflicts", f"{n}-way conflict"]) == pytest.approx(n, rel=0.03)
    assert value(sheet["conflicts", "farthest from n"]) == pytest.approx(1, rel=0.03)


def test_contended_atomics_are_served_one_after_the_other(sheet: dict[tuple[str, str], Figure]) -> None:
    for where, bits in (("shared", 32), ("shared", 64), ("global", 32), ("global", 64)):
        own, one = (value(sheet["atomics", f"{where}, {bits} bits, {words}"]) for words in ("own words", "one word"))
        assert one > 10 * own


def test_matrices_take_their_wavefronts(sheet: dict[tuple[str, str], Figure]) -> None:
    loads = {1: "ldmatrix.x1", 2: "ldmatrix.x2", 4: "ldmatrix.x4", 32: "ldmatrix.x4, 8-way conflicts"}
    for wavefronts, name in loads.items():
        assert value(sheet["matrices", f"{name}: throughput"]) == pytest.approx(wavefronts, rel=0.05)
    latencies = [value(sheet["matrices", f"{name}: latency"]) for name in loads.values()]
    assert latencies == sorted(latencies)


def test_as_many_blocks_are_resident_as_the_driver_calculates(sheet: dict[tuple[str, str], Figure]) -> None:
    for (family, name), figure in sheet.items():
        if family == "carveout":
            assert (figure.published or "").startswith(f"{value(figure):.0f} "), name


def test_a_copy_takes_longer_the_more_it_copies(sheet: dict[tuple[str, str], Figure]) -> None:
    for way in ("load and store", "cp.async of 16 bytes", "cp.async.bulk"):
        if result := sheet.get(("copies", f"{way}: latency of 128 B")):
            assert value(result) < value(sheet["copies", f"{way}: latency of 16 KiB"])
    alone, together = (f"load and store: {where}" for where in ("one SM by itself", "all SMs together"))
    assert value(sheet["copies", together]) < 1.02 * value(sheet["copies", alone])


def test_another_blocks_shared_memory_is_farther_away(sheet: dict[tuple[str, str], Figure]) -> None:
    for size in (2, 4, 8, 16):
        if result := sheet.get(("clusters", f"clusters of {size}: latency")):
            own = value(sheet["clusters", "own block, by its address in the cluster: latency"])
            assert 3 * own < value(result) < value(sheet["latency", "global memory"])
