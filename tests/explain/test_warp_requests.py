"""Random requests: what is drawn, that each kernel makes one request, and what is said of the counts."""

from __future__ import annotations

import csv
import struct
from collections import Counter
from collections.abc import Sequence
from io import BytesIO, StringIO
from pathlib import Path
from random import Random

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st
from warp_requests.counting import Counted, compare, failures
from warp_requests.kernels import SOURCE, SPAN_BYTES
from warp_requests.patterns import PATTERNS, SPAN
from warp_requests.requests import FAMILIES, Request, drawn
from warp_requests.tables import request_records, sections

from smembench.explain.banks import lanes_together, wavefronts
from smembench.explain.warp import active_lanes
from smembench.kernels.program import CudaCKernel
from smembench.model.device import DeviceInfo
from smembench.toolchains.mnemonics import mnemonic
from smembench.toolchains.nvrtc import TOOLCHAIN, compiled
from smembench.views.records import csv as as_csv
from smembench.views.table import drawn as as_text

HOPPER = (9, 0)
SEEDS = st.integers(0, 2**32)


@given(st.sampled_from([*PATTERNS]), SEEDS)
def test_a_pattern_has_a_place_for_every_lane_and_an_active_one(name: str, seed: int) -> None:
    places = PATTERNS[name](Random(seed))
    assert len(places) == 32
    active = [place for place in places if place is not None]
    assert active
    assert all(0 <= place < SPAN for place in active)
    assert places == PATTERNS[name](Random(seed))


@given(SEEDS, st.integers(1, 60))
def test_requests_are_what_their_instructions_can_ask_for(seed: int, count: int) -> None:
    requests = drawn(seed, count, HOPPER)
    assert sum(request.family.asked for request in requests) >= count
    assert {request.family for request in requests} == set(FAMILIES)
    for request in requests:
        family = request.family
        lanes = active_lanes(request.addresses, family.width)  # aligned and not negative
        assert all(address + family.width <= SPAN_BYTES for _, address in lanes)
        assert family.lanes is None or [lane for lane, _ in lanes] == [*range(family.lanes)]
        assert request.predicted >= 1
    assert requests == drawn(seed, count, HOPPER)
    assert requests != drawn(seed + 1, count, HOPPER)


def test_a_gpu_is_asked_only_for_instructions_that_it_has() -> None:
    assert {request.family for request in drawn(1, 1, (7, 0))} == {f for f in FAMILIES if f.capability <= (7, 0)}
    assert {f.kind for f in FAMILIES if f.capability > (7, 0)} >= {"cp.async", "ldmatrix.x4", "stmatrix.x4"}


def test_a_thousand_requests_meet_every_case_of_the_rule_of_wide_accesses() -> None:
    result = {
        (family.width, family.kind, lanes_together(request.addresses, family.width, family.kind))
        for request in drawn(1, 1000, HOPPER)
        if (family := request.family).asked
    }
    assert result == {
        *((4, kind, 32) for kind in ("load", "store")),
        *((8, "load", lanes) for lanes in (16, 32)),
        *((16, "load", lanes) for lanes in (8, 16)),
        *((8, "store", 16), (16, "store", 8)),
    }


MNEMONICS = {"load": "LDS", "store": "STS", "atomic add": "ATOMS", "atomic cas": "ATOMS", "cp.async": "LDGSTS"}
MNEMONICS |= {f"ldmatrix.x{count}": "LDSM" for count in (1, 2, 4)}
MNEMONICS |= {f"stmatrix.x{count}": "STSM" for count in (1, 2, 4)}
MNEMONICS |= {"global load": "LDG", "global store": "STG"}


@pytest.mark.skipif(TOOLCHAIN.unavailable() is not None, reason="NVRTC is not installed")
def test_each_kernel_makes_one_request_of_what_its_counter_counts() -> None:
    kernel = CudaCKernel(source=SOURCE, entry="", grid=(1, 1), block=(32, 1))
    code = bytes(compiled(kernel, "9.0").code)
    counts = {
        section.name.removeprefix(".text."): Counter(
            mnemonic(low & 0xFFF) for low, _ in struct.iter_unpack("<QQ", data)
        )
        for section in ELFFile(BytesIO(code)).iter_sections()
        if section.name.startswith(".text.") and (data := section.data())
    }
    shared = {"LDS", "STS", "ATOMS", "LDGSTS", "LDSM", "STSM"}
    assert set(counts) == {family.entry for family in FAMILIES}
    for family in FAMILIES:
        own, result = MNEMONICS[family.kind], counts[family.entry]
        assert result[own] == 1, family
        counted = {"LDG": {"LDG"}, "STG": {"STG"}}.get(own, shared)
        others = {name: result[name] for name in counted - {own} if result[name]}
        # Before a copy ptxas puts three loads that no lane executes.
        assert others == ({"LDS": 3} if own == "LDGSTS" else {}), family


def counted(wrong: int) -> list[Counted]:
    """Requests whose counts are as predicted, but for so many loads of 8 bytes and one guess."""
    result = []
    for request in drawn(7, 60, HOPPER):
        off = (request.family.entry == "load8" and wrong > 0) or request.family.entry == "atomic_add4"
        wrong -= off and request.family.entry == "load8"
        result.append(Counted(request, request.predicted + off))
    return result


DEVICE = DeviceInfo(name="cuda:0", model="NVIDIA H200", driver="580.1", compute_capability="9.0")


def test_only_what_contradicts_a_rule_of_explain_is_a_failure() -> None:
    assert failures(counted(0)) == []
    result = counted(2)
    assert [item.request.family.entry for item in failures(result)] == ["load8", "load8"]
    first = failures(result)[0]
    text = " ".join(as_text(sections(result, DEVICE, 7)).split())
    assert f"{first.request.predicted} predicted, {first.count} counted, at addresses {first.request}" in text
    predicted = sum(not item.request.family.guess for item in result)
    assert f"{predicted - 2} of {predicted} requests are counted as explain predicts" in text


def test_requests_that_were_counted_before_ctrl_c_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def watched(child: object, metrics: Sequence[str], *_: object, launches: int, **__: object) -> object:
        if "_op_ld" in metrics[0]:
            return {metric: [4.0] * launches for metric in metrics}, False
        return {metric: [4.0] * 3 for metric in metrics}, True

    monkeypatch.setattr("warp_requests.counting.watched", watched)
    monkeypatch.setattr("warp_requests.counting.installed", lambda: "ncu")
    monkeypatch.setattr(TOOLCHAIN, "unavailable", lambda: None)
    steps: list[tuple[str, int, int]] = []
    result: list[Counted] = []
    with pytest.raises(KeyboardInterrupt):
        result.extend(compare(7, 60, "9.0", lambda *step: steps.append(step)))
    requests = drawn(7, 60, HOPPER)
    loads_and_stores = sum(request.family.kind in ("load", "store") for request in requests)
    assert [item.request for item in result] == requests[: loads_and_stores + 3]
    assert [done for _, done, _ in steps] == [0, loads_and_stores]


def test_the_csv_is_that_of_the_requests_that_the_rule_was_found_on() -> None:
    stored = Path(__file__).parents[2] / "results/reference/h200-shared-requests.csv"
    header = stored.read_text(encoding="utf-8").splitlines()[0].split(",")
    rows = [*csv.DictReader(StringIO(as_csv(request_records(counted(0)))))]
    assert [*rows[0]] == [*header, "sectors", "pattern"]
    for row in rows:
        if row["kind"] in ("load", "store"):
            addresses = [int(row[f"lane{lane}"]) if row[f"lane{lane}"] else None for lane in range(32)]
            assert wavefronts(addresses, int(row["width_bytes"]), row["kind"]) == int(row["wavefronts"])
        assert bool(row["sectors"]) is row["kind"].startswith("global") is not bool(row["wavefronts"])


@pytest.mark.parametrize("gpu", ["h100", "h200"])
def test_what_a_gpu_counted_of_other_instructions_follows_their_rules(gpu: str) -> None:
    """All but compare-and-swap and asynchronous copies, whose rules are not known."""
    stored = Path(__file__).parents[2] / f"results/reference/{gpu}-shared-requests-doctor.csv"
    families = {(family.kind, family.width): family for family in FAMILIES}
    seen: Counter[str] = Counter()
    for row in csv.DictReader(stored.read_text(encoding="utf-8").splitlines()):
        family = families[row["kind"], int(row["width_bytes"])]
        if family.kind.startswith(("atomic cas", "cp.async")):
            continue
        addresses = tuple(int(row[f"lane{lane}"]) if row[f"lane{lane}"] else None for lane in range(32))
        assert Request(family, row["pattern"], addresses).predicted == int(row["wavefronts"] or row["sectors"]), row
        seen[family.kind.split()[0].split(".")[0]] += 1
    assert seen == {"load": 601, "store": 601, "ldmatrix": 150, "stmatrix": 150, "atomic": 50, "global": 500}
