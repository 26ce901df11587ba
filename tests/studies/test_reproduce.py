"""The documents' figures and claims: as they print them, as their own arithmetic has them, and as runs answer them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from math import inf
from pathlib import Path

import pytest

from conftest import ROOT, Measured
from smembench.model.case import Block
from smembench.model.device import DeviceInfo
from smembench.model.errors import DeviceUnavailable
from smembench.model.measurement import Status
from smembench.run.config import from_toml
from smembench.run.shipped import shipped
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.studies.probe import sheet as sheets
from smembench.studies.probe.figure import Figure
from smembench.studies.probe.sheet import IN_RUN, Sheet, read
from smembench.studies.reproduce.claim import FASTER, Bounds, Claim
from smembench.studies.reproduce.devices import devices, probed, reference
from smembench.studies.reproduce.judge import CLAIMS, Holds, holds, judge
from smembench.studies.reproduce.measures import (
    Answer,
    Here,
    Latency,
    Limit,
    Missing,
    Nothing,
    Pick,
    Reads,
    Reuse,
    Times,
    two_digits,
)

FAST = [0.9, 0.95, 1.0, 1.0, 1.05, 1.1]
SLOW = [2 * value for value in FAST]
PADDING = Times(Pick("transpose", "transposeSmem"), Pick("transpose", "transposeSmemPad"))
H200 = DeviceInfo(name="cuda:0", model="H200", compute_capability="9.0")
CPU = Here(Run([]), "cpu")


def here_of(measured: Measured, slower: list[float], faster: list[float]) -> Here:
    """A GPU with both kernels of the claim on padding."""
    result = [measured("transposeSmem", slower), measured("transposeSmemPad", faster)]
    return Here(Run.of(Description(devices=[H200]), result), "cuda:0")


def a_claim(**fields: object) -> Claim:
    """A claim that shared memory is faster."""
    return replace(Claim("it is faster", PADDING, why="Because.", place="a place"), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("slower", "faster", "verdict", "text"),
    [
        (SLOW, FAST, Holds.YES, "2.00×"),
        (FAST, SLOW, Holds.NOT_ANY_MORE, "0.50×"),
        (FAST, FAST, Holds.UNDECIDED, "1.00×"),
        ([1.0, 2.0, 3.0], [0.5, 1.5, 2.5], Holds.UNDECIDED, "1.33×"),
        ([500.0] * 6, [1.0] * 6, Holds.YES, "500×"),
    ],
)
def test_claims_hold_only_where_intervals_are_apart(
    measured: Measured, slower: list[float], faster: list[float], verdict: Holds, text: str
) -> None:
    here = here_of(measured, slower, faster)
    ((judged),) = judge(here, [a_claim(published={"old": 1.1})])
    assert isinstance(judged.answer, Answer)
    assert (judged.holds, judged.answer.text) == (verdict, text)
    assert judged.answer.low <= judged.answer.value <= judged.answer.high
    assert judged.answer.beside == "–".join(map(two_digits, (judged.answer.low, judged.answer.high)))


@pytest.mark.parametrize(
    ("bounds", "published", "on_gpu", "verdict"),
    [
        (Bounds(20, 30), {}, True, Holds.YES),
        (Bounds(26, inf), {}, True, Holds.NO),
        (Bounds(26, inf), {"old": 27.0}, True, Holds.NOT_ANY_MORE),
        (Bounds(26, inf), {"old": 27.0}, False, Holds.NO),
        (Bounds(26, inf), {"old": 27.0, "older": 1.0}, True, Holds.NO),
        (Bounds(1, 23), {}, True, Holds.NO),
        (Bounds(25, inf), {}, True, Holds.UNDECIDED),
        (Bounds(1, 24.5), {}, True, Holds.UNDECIDED),
    ],
)
def test_an_interval_decides_by_where_all_of_it_lies(
    bounds: Bounds, published: dict[str, float], on_gpu: bool, verdict: Holds
) -> None:
    result = Answer(25.0, 24.0, 25.5, "25×", "")
    assert holds(a_claim(holds_in=bounds, published=published), result, on_gpu=on_gpu) is verdict


def test_a_limit_that_never_was_one_and_a_ratio_beyond_the_claimed_are_told_apart() -> None:
    result, wanted = Answer.exactly(228.0, "228 KiB", ""), Bounds(48, 48)
    limit = a_claim(measure=Limit(lambda capability: 228, "KiB"), holds_in=wanted, published={"": 48.0})
    assert holds(limit, result) is Holds.NO
    assert holds(replace(limit, true_on="compute capability 3.5"), result) is Holds.NOT_ANY_MORE
    latency = a_claim(measure=Latency("global memory", over="shared memory"), holds_in=Bounds(20, 30))
    assert holds(latency, Answer(31.0, 30.1, 32.0, "31×", "")) is Holds.MORE
    assert holds(latency, Answer(31.0, 29.9, 32.0, "31×", "")) is Holds.UNDECIDED


def test_the_interval_of_a_latency_contains_those_of_every_stored_sheet_of_the_model() -> None:
    here = reference()
    assert here is not None
    sheets = [read(ROOT / "results/reference" / name) for name in ("h200-probe.json", f"{here.run.id}/{IN_RUN}")]
    for name, (_, low, high) in here.latency.items():
        stored = [figure for sheet in sheets for figure in sheet.figures if figure.name == name]
        assert low == min(figure.low or inf for figure in stored if figure.family == "latency")
        assert high == max(figure.high or 0.0 for figure in stored if figure.family == "latency")


def test_reads_of_a_and_of_b_are_told_apart() -> None:
    result = [Reads("naive", Block(16, 16), 64, 32, 16, matrix).on(CPU) for matrix in "AB"]
    assert [getattr(answer, "value", None) for answer in result] == [32, 64]


def test_no_difference_is_not_faster() -> None:
    assert holds(a_claim(holds_in=FASTER), Answer.exactly(1.0, "1×", "")) is Holds.NO


def test_a_missing_answer_says_why(measured: Measured) -> None:
    gpu = here_of(measured, [2.0], [1.0])
    assert PADDING.on(gpu) is Missing.NO_TIME, "a single sample each"
    assert PADDING.on(here_of(measured, [], FAST)) is Missing.NO_TIME, "one failed"
    assert Times(Pick("transpose", "naiveGmem"), Pick("transpose", "copyGmem")).on(gpu) is Missing.NOT_IN_RUN
    assert Times(Pick("transpose", "memcpy"), Pick("access", "setRowReadRow")).on(CPU) is Missing.NEEDS_GPU
    assert PADDING.on(CPU) is Missing.NEEDS_GPU
    assert Latency("global memory").on(gpu) is Missing.NEEDS_PROBE
    assert Latency("global memory").on(CPU) is Missing.NEEDS_GPU
    assert Limit(lambda capability: None, "bytes").on(gpu) is Missing.NOT_MEASURED
    assert Limit(lambda capability: 4, "bytes").on(CPU) is Missing.NEEDS_GPU
    assert Nothing().on(gpu) is Missing.NOT_MEASURED


def test_rates_of_two_problems_are_compared_per_byte(measured: Measured) -> None:
    copy = measured("memcpy", [1.0] * 6, block=None)
    rows = measured("setRowReadRow", [1.0] * 6, problem="access", n=1024)
    rows = replace(rows, case=replace(rows.case, dtype="int32"), bytes_moved=8 * copy.bytes_moved)
    run = Run.of(Description(devices=[H200]), [copy, rows])
    answer = Times(Pick("transpose", "memcpy"), Pick("access", "setRowReadRow")).on(Here(run, "cuda:0"))
    assert isinstance(answer, Answer)
    assert answer.value == pytest.approx(8.0)
    assert answer.text == "8.00×"


def test_a_case_is_picked_by_block_and_size(measured: Measured) -> None:
    both = [measured("naiveGmem", [1.0], block=Block(side, side)) for side in (16, 32)]
    here = Here(Run.of(Description(), [*both, measured("naiveGmem", [1.0], n=8192)]), "cuda:0")
    result = [Pick("transpose", "naiveGmem", Block(32, 32), n).of(here) for n in (4096, 8192, 1)]
    assert [getattr(row, "n", row) for row in result] == [4096, 8192, Missing.NOT_IN_RUN]
    assert getattr(Pick("transpose", "naiveGmem", Block(16, 16)).of(here), "block_x", None) == 16


def test_latencies_are_held_against_each_other_with_their_intervals() -> None:
    here = Here(Run([]), "cuda:0", {"global memory": (600.0, 590.0, 610.0), "shared memory": (30.0, 29.0, 31.0)})
    answer = Latency("global memory", over="shared memory").on(here)
    assert isinstance(answer, Answer)
    assert (answer.value, answer.low, answer.high) == pytest.approx((20, 590 / 31, 610 / 29))
    cycles = Latency("global memory").on(here)
    assert isinstance(cycles, Answer)
    assert (cycles.text, cycles.beside) == ("600 cycles", "590–610")


@pytest.mark.parametrize(("side", "n"), [(2, 4), (4, 16), (8, 16)])
def test_a_tile_is_reused_as_often_as_its_side(side: int, n: int) -> None:
    answer = Reuse(Block(side, side), n).on(CPU)
    assert isinstance(answer, Answer)
    assert answer.value == side
    assert answer.beside == f"counted: {n} reads become {n // side}"


def test_the_config_of_the_documents_has_every_case_that_a_claim_needs() -> None:
    from smembench.kernels import registry
    from smembench.model.device import Limits
    from smembench.run.plan import Plan

    gpu = Limits(2**36, max_threads=1024, max_block=(1024, 1024), max_shared_bytes=2**17, multiprocessors=132)
    limits = {"cuda:0": gpu, "cpu": Limits(2**36)}
    planned = list(Plan.of(from_toml(Path("documents")), {"auto": "cuda:0", "cpu": "cpu"}).cases(limits))
    cases = {(item.case.problem, item.case.kernel, item.case.block, item.case.n) for item in planned if not item.skip}
    picks = [
        pick
        for claim in chain.from_iterable(CLAIMS.values())
        if isinstance(claim.measure, Times)
        for pick in (claim.measure.slower, claim.measure.faster)
    ]
    assert picks
    for pick in picks:
        assert pick.kernel in registry.names(pick.problem)
        assert any(
            (problem, kernel) == (pick.problem, pick.kernel) and pick.block in (None, block) and pick.n in (None, n)
            for problem, kernel, block, n in cases
        ), pick
    assert shipped()["documents"].is_file()


def test_the_stored_run_of_a_gpu_answers_for_machines_without_one(tmp_path: Path) -> None:
    here = reference()
    assert here is not None
    assert here.info is not None
    assert (here.device, here.info.model) == ("cuda:0", "NVIDIA H200")
    unanswered = {one.claim.measure for claims in CLAIMS.values() for one in judge(here, claims) if one.holds is None}
    assert unanswered == {Nothing()}
    assert reference(tmp_path) is None, "as where the package is installed"


def test_a_data_sheet_in_a_runs_folder_has_its_latencies(tmp_path: Path) -> None:
    source = max((ROOT / "results/reference").glob("*-documents"))
    for name in ("cases.csv", "samples.csv", "run.json"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    (tmp_path / IN_RUN).write_text(
        """{"schema_version": 1, "measured_at_utc": "2026-11-23T00:00:00+00:00", "versions": {},
            "device": {"name": "cuda:0", "kind": "cuda", "model": "H200", "memory_bytes": 1},
            "figures": [{"name": "shared memory", "value": 30, "low": 29, "high": 31, "family": "latency"},
                        {"name": "L1 cache", "family": "latency", "status": "failed", "reason": "no"}]}"""
    )
    (here,) = devices(load(tmp_path))
    assert here.latency == {"shared memory": (30.0, 29.0, 31.0)}


def test_reproduce_measures_latencies_of_the_gpus_of_a_run(measured: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def sheet(device: str, families: list[str], processes: int) -> Sheet:
        asked.append((device, families))
        if device == "cuda:1":
            raise DeviceUnavailable("in use")
        figure = Figure.of("global memory", "cycles", [600.0] * 6, "a chain")
        return Sheet(measured_at_utc="", device=H200, versions={}, figures=[replace(figure, family="latency")])

    monkeypatch.setattr("smembench.studies.reproduce.devices.repeated", sheet)
    cases = [measured("copyGmem", FAST, device=device) for device in ("cpu", "cuda:0", "cuda:1")]
    result = probed(Run.of(Description(), cases))
    assert asked == [("cuda:0", ["latency"]), ("cuda:1", ["latency"])]
    assert [(here.device, here.latency) for here in result] == [
        ("cuda:0", {"global memory": (600.0, 600.0, 600.0)}),
        ("cuda:1", {}),
    ]
    assert [here.device for here in probed(Run.of(Description(), cases[:1]))] == ["cpu"]


def test_a_figure_of_several_processes_has_an_interval_that_contains_all_of_theirs() -> None:
    made = [Figure.of("L2 cache", "cycles", [float(at + step) for step in range(9)], "") for at in (200, 210, 260)]
    result = sheets._over(made)
    assert (result.value, result.low, result.high) == (214, made[0].low, made[2].high)
    assert sheets._over([*made, Figure.missing("L2 cache", Status.FAILED, "no")]).reason == "no"
