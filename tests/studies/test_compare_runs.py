"""Stored runs to verdicts: what is paired with what, what is not comparable, and what stands around it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import Rows
from smembench.model.case import Block, Case
from smembench.model.errors import UsageError
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.studies.compare import Comparison, Rules, Verdict, compare_runs
from smembench.studies.compare.itself import compare_with_itself
from smembench.views.compare import comparison_sections, namer, self_section
from smembench.views.markdown import markdown

QUIET = (1.000, 1.001, 0.999)
DEVICE = {
    "name": "cuda:0",
    "kind": "cuda",
    "model": "NVIDIA H200",
    "uuid": "GPU-1",
    "driver": "580.1",
    "sm_clock_max_mhz": 1980,
    "power_limit_w": 700.0,
}
RUN = {"versions": {"numba": "0.68.0"}, "git": {"revision": "a" * 40, "dirty": False}, "devices": [DEVICE]}

Make = Callable[..., Run]


@pytest.fixture
def make(rows: Rows) -> Make:
    """A run of kernels from the medians of their rounds; ``row`` changes the rows and ``device`` the device."""

    def one(
        times: Mapping[str, Sequence[float]],
        *,
        name: str = "run",
        row: Mapping[str, Any] | None = None,
        device: Mapping[str, Any] | None = None,
        run: Mapping[str, Any] | None = None,
        sampled: bool = True,
    ) -> Run:
        made = [replace(item, run_id=name, **(row or {})) for item in rows(times)]
        by_case = {
            item.case_id: {number: [median] * 3 for number, median in enumerate(rounds)}
            for item, rounds in zip(made, times.values(), strict=True)
        }
        described = {**RUN, "devices": [DEVICE | dict(device or {})]} | dict(run or {})
        return Run(made, Description.model_validate(described), by_case if sampled else {}, Path(name))

    return one


def scaled(factor: float) -> list[float]:
    return [factor * time for time in QUIET]


def only(result: Comparison) -> tuple[Verdict, str]:
    (case,) = result.cases
    return case.verdict, case.reason


def test_runs_by_two_engines_are_compared_and_say_so(make: Make) -> None:
    base = make({"memcpy": QUIET, "copyGmem": QUIET, "naiveGmem": QUIET})
    new = make({"memcpy": QUIET, "copyGmem": scaled(1.5), "transposeSmem": QUIET}, name="new")
    rows = [replace(row, compiler="mlir", case_id=replace(row.case, compiler="mlir").id) for row in new.rows[1:]]
    samples = dict(zip([row.case_id for row in (new.rows[0], *rows)], new.samples.values(), strict=True))
    result = compare_runs([base], [replace(new, rows=[new.rows[0], *rows], samples=samples)])
    slower = result.cases[0]
    assert (slower.verdict, slower.case.kernel, slower.case.compiler) == (Verdict.SLOWER, "copyGmem", "numba")
    assert [str(cause) for cause in slower.causes] == ["compiler was numba, is mlir"]
    assert [str(entry) for entry in result.environment] == ["compiler was numba, is mlir"]
    assert (len(result.cases), len(result.only_base), len(result.only_new)) == (2, 1, 1)

    both = replace(new, rows=[*base.rows[1:2], *rows[:1]])
    assert sorted(case.case.compiler for case in compare_runs([both], [both]).cases) == ["mlir", "numba"]


def test_cases_come_in_the_order_of_what_matters(make: Make) -> None:
    factors = {
        "memcpy": 1.0,
        "copyGmem": 0.8,
        "naiveGmem": 1.15,
        "transposeSmem": 1.5,
        "transposeSmemUnroll": 1.002,
    }
    base = make(dict.fromkeys(factors, QUIET))
    new = make({kernel: scaled(factor) for kernel, factor in factors.items()})
    result = compare_runs([base], [new])
    assert [(case.case.kernel, case.verdict) for case in result.cases] == [
        ("transposeSmem", Verdict.SLOWER),
        ("naiveGmem", Verdict.SLOWER),
        ("copyGmem", Verdict.FASTER),
        ("transposeSmemUnroll", Verdict.SAME),
        ("memcpy", Verdict.SAME),
    ]
    assert [case.case.kernel for case in result.regressions] == ["transposeSmem", "naiveGmem"]
    assert result.counts[Verdict.SAME] == 2
    assert result.cases[0].ratio == pytest.approx(1.5)


def test_cases_of_one_side_are_named(make: Make) -> None:
    result = compare_runs([make({"memcpy": QUIET, "copyGmem": QUIET})], [make({"memcpy": QUIET, "naiveGmem": QUIET})])
    assert len(result.cases) == 1
    assert "copyGmem" in result.only_base[0]
    assert "naiveGmem" in result.only_new[0]


def test_nothing_in_common_is_said(make: Make) -> None:
    result = compare_runs([make({"memcpy": QUIET})], [make({"copyGmem": QUIET})])
    assert not result.cases
    assert comparison_sections(result)[-1].sentence == "The sides have no case in common."


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ({"device": {"model": "NVIDIA A100"}}, "another device: model NVIDIA H200, then NVIDIA A100"),
        ({"device": {"uuid": "GPU-2"}}, "another device: GPU GPU-1, then GPU-2"),
        ({"device": {"uuid": None}}, ""),  # the same run, as its id says
        (
            {"device": {"uuid": None}, "name": "other"},
            "other does not say which GPU it was measured on; if it is the same, add --across device",
        ),
        ({"device": {"driver": "590.2"}}, ""),  # compared across, and named
        ({"device": {"power_limit_w": 500.0}}, ""),
        ({"row": {"cpu_governor": "powersave"}}, ""),
        ({"row": {"dtype": "float64"}}, "not the same case: dtype float32, then float64"),
        ({"row": {"throttle_reasons": "hw_thermal"}}, "new: the GPU throttled (hw_thermal)"),
        ({"row": {"cpu_waiting": 0.5}}, "new: measured on a busy host (threads waited for cores)"),
        ({"row": {"verified": False}}, "new: the result was not verified"),
        ({"row": {"status": "failed", "reason": "it broke"}}, "new: failed: it broke"),
    ],
)
def test_what_is_not_comparable(make: Make, side: dict[str, Any], reason: str) -> None:
    result = compare_runs([make({"memcpy": QUIET})], [make({"memcpy": scaled(2)}, **side)])
    expected = Verdict.NOT_COMPARABLE if reason else Verdict.SLOWER
    assert only(result) == (expected, reason)


def test_a_device_that_differs_may_be_what_is_compared(make: Make) -> None:
    sides = [make({"memcpy": QUIET})], [make({"memcpy": scaled(2)}, device={"uuid": "GPU-2"})]
    assert compare_runs(*sides).cases[0].other_device
    assert only(compare_runs(*sides, across=["device"]))[0] is Verdict.SLOWER
    with pytest.raises(UsageError, match="across driver: only device can be given"):
        compare_runs(*sides, across=["driver"])


@pytest.mark.parametrize(
    ("side", "cause"),
    [
        ({"device": {"driver": "590.2"}}, "cuda:0 driver was 580.1, is 590.2"),
        ({"device": {"sm_clock_max_mhz": 1410}}, "cuda:0 SM clock limit in MHz was 1980, is 1410"),
        ({"run": {"versions": {"numba": "0.69.0"}}}, "numba was 0.68.0, is 0.69.0"),
        ({"row": {"registers": 40}}, "registers per thread was 32, is 40"),
        ({"row": {"cpu_governor": "powersave"}}, "CPU frequency governor was performance, is powersave"),
        (
            {"row": {"registers": 40, "code_hash": "b", "predicted_load_conflict": 32.0, "predicted_load_line": 59}},
            "machine code changed; wavefronts per shared load was 1, is 32 (line 59); registers per thread was 32, "
            "is 40",
        ),
        ({"row": {"predicted_load_line": 59}}, ""),  # lines move without any change
        ({"row": {"sm_clock_mhz": 1755}}, "SM clock in MHz was 1980, is 1755"),
        ({"device": {"nvlinks": 18}}, ""),  # the other side does not record them
        ({}, ""),
    ],
)
def test_what_may_be_why_a_case_is_slower_stands_beside_it(make: Make, side: dict[str, Any], cause: str) -> None:
    recorded = {
        "registers": 32,
        "cpu_governor": "performance",
        "code_hash": "a" if "code_hash" in side.get("row", {}) else None,
        "predicted_load_conflict": 1.0,
        "sm_clock_mhz": 1980,
    }
    base = make({"memcpy": QUIET, "copyGmem": QUIET}, row=recorded)
    row = {**recorded, **side.get("row", {})}
    result = compare_runs([base], [make({"memcpy": scaled(2), "copyGmem": QUIET}, **{**side, "row": row})])
    slower, same = result.cases
    assert ["; ".join(map(str, case.causes)) for case in (slower, same)] == [cause, ""]
    notes = comparison_sections(result)[-1].notes
    reason = cause or "nothing that is recorded changed"
    assert [note for note in notes if "possible cause" in note] == [
        f"possible cause of slower: memcpy 32x32 4096x4096: {reason}"
    ]


def test_the_limits_of_one_run_on_each_side_are_those_of_the_cases_that_have_one(make: Make) -> None:
    base = [make({"memcpy": QUIET, "copyGmem": QUIET}, name="one"), make({"memcpy": QUIET}, name="two")]
    new = make({"memcpy": QUIET, "copyGmem": QUIET}, name="new")
    assert compare_runs(base[:1], [new]).caution.startswith("one run on each side, weighed without others")
    assert compare_runs(base, [new]).caution.startswith(
        "1 of 2 compared cases have one usable run on each side, weighed without others"
    )


def test_of_the_same_machine_code_no_compiler_is_why(make: Make) -> None:
    sides = [
        make({"memcpy": times}, row={"code_hash": "a"}, run={"versions": {"numba": numba}}, device={"driver": driver})
        for times, numba, driver in ((QUIET, "0.68.0", "580"), (scaled(2), "0.69.0", "590"))
    ]
    (case,) = compare_runs(sides[:1], sides[1:]).cases
    assert case.cause == "same machine code; cuda:0 driver was 580, is 590"
    alone = make({"memcpy": scaled(2)}, row={"code_hash": "a"}, device={"driver": "580"})
    (case,) = compare_runs(sides[:1], [alone]).cases
    assert case.cause == "same machine code; nothing else that is recorded changed"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"grid": "n//128"}, "not the same case: grid 16, then 32"),
        ({"grid": "cdiv(n, 256),2"}, "not the same case: grid 16, then 16x2"),
        ({"block": "32x8x2"}, "not the same case: block 32x8, then 32x8x2"),
        ({"cluster": "2"}, "not the same case: cluster none, then 2"),
        ({"arg": ["float32[n]", "5"]}, "not the same case: arg float32[4096] 4, then float32[4096] 5"),
        ({"grid": "16"}, ""),
        ({"arg": ["float32[4096] $7", "n//1024"]}, ""),
        ({"sizes": {"n": 64}, "grid": 1}, ""),  # another size's sweep
    ],
)
def test_launches_that_differ_are_not_one_case(make: Make, changed: dict[str, Any], expected: str) -> None:
    sweep = {"problem": "time", "kernel": ["k.cu:mine"], "name": "memcpy", "sizes": {"n": [4096]}}
    sweep |= {"grid": "cdiv(n, 256)", "block": "32x8", "arg": ["float32[n]", "4"]}
    before, after = (
        make({"memcpy": times}, row={"problem": "time"}, run={"config": {"sweep": [entry]}})
        for times, entry in ((QUIET, sweep), (scaled(2), sweep | changed))
    )
    verdict, reason = only(compare_runs([before], [after]))
    assert (verdict is Verdict.SLOWER, reason) == (not expected, expected)


def test_a_throttled_run_is_left_out_where_others_are_not(make: Make) -> None:
    hot = make({"memcpy": scaled(9)}, row={"throttle_reasons": "hw_thermal"})
    result = compare_runs([make({"memcpy": QUIET})], [hot, make({"memcpy": QUIET})])
    assert only(result) == (Verdict.SAME, "")


@pytest.mark.parametrize(
    ("factor", "before", "after", "verdict"),
    [
        (1.10, 1980, 1800, Verdict.AMBIGUOUS),  # slower in time, the same in cycles
        (1.00, 1800, 1980, Verdict.AMBIGUOUS),  # a faster clock hides a slowdown
        (1.10, 1980, 1980, Verdict.SLOWER),
        (1.30, 1980, 1800, Verdict.SLOWER),  # more than the clock explains
        (1.10, None, 1800, Verdict.SLOWER),
        (1.00, 1980, 1965, Verdict.SAME),
    ],
)
def test_time_and_cycles_must_agree(
    make: Make, factor: float, before: int | None, after: int, verdict: Verdict
) -> None:
    base = make({"memcpy": QUIET}, row={"sm_clock_mhz": before})
    result = compare_runs([base], [make({"memcpy": scaled(factor)}, row={"sm_clock_mhz": after})])
    assert only(result)[0] is verdict
    assert ("the SM clock was" in only(result)[1]) == (verdict is Verdict.AMBIGUOUS)


@pytest.mark.parametrize(("kind", "verdict"), [("cuda", Verdict.AMBIGUOUS), ("cpu", Verdict.SLOWER)])
def test_rounds_that_agree_are_as_noisy_as_the_events_that_time_them(make: Make, kind: str, verdict: Verdict) -> None:
    """Readings of events lie 0.13 µs apart, and a round has one of them: 18 % of 0.7 µs."""
    device = {"name": "cpu", "kind": "cpu", "uuid": "host"} if kind == "cpu" else {}
    base, new = (
        make({"memcpy": [time] * 3}, device=device, row={"device": "cpu" if kind == "cpu" else "cuda:0"})
        for time in (0.00070, 0.00083)
    )
    assert only(compare_runs([base], [new]))[0] is verdict


def test_runs_of_one_round_are_ambiguous_and_say_why(make: Make) -> None:
    result = compare_runs([make({"memcpy": [1.0]})], [make({"memcpy": [2.0]})])
    assert only(result)[0] is Verdict.AMBIGUOUS
    assert "not --quick" in only(result)[1]
    assert result.cases[0].ratio == 2
    assert result.cases[0].q is None


def test_csv_files_alone_are_compared_when_there_are_several(make: Make) -> None:
    base = [make({"memcpy": [time] * 3}, sampled=False) for time in (1.0, 1.001, 0.999)]
    new = [make({"memcpy": [time] * 3}, sampled=False) for time in (1.1, 1.101, 1.099)]
    assert only(compare_runs(base[:1], new[:1]))[0] is Verdict.AMBIGUOUS
    assert only(compare_runs(base, new)) == (Verdict.SLOWER, "")


def test_from_two_runs_on_a_run_is_the_unit(make: Make) -> None:
    """Rounds agree within a run, and runs do not: taken by rounds this would be certain."""
    base = [make({"memcpy": [time, time * 1.0001, time * 0.9999]}) for time in (1.00, 1.03, 1.06)]
    new = [make({"memcpy": [time, time * 1.0001, time * 0.9999]}) for time in (1.03, 1.07, 1.10)]
    (case,) = compare_runs(base, new).cases
    assert case.base.units == 3
    assert case.verdict is Verdict.AMBIGUOUS
    assert compare_runs(base[:2], new[:2]).cases[0].base.units == 2
    assert compare_runs(base[:1], new[:1]).cases[0].base.units == 3
    (case,) = compare_runs(base, new[:1]).cases
    assert (case.base.units, case.new.units) == (3, 1)
    assert case.verdict is Verdict.AMBIGUOUS


def test_environments_that_differ_are_listed(make: Make) -> None:
    changed = {"versions": {"numba": "0.69.0", "numpy": "2.4.6"}, "git": {"revision": "b" * 40, "dirty": True}}
    result = compare_runs([make({"memcpy": QUIET})], [make({"memcpy": QUIET}, device={"driver": "590.2"}, run=changed)])
    assert [(item.what, item.base, item.new) for item in result.environment] == [
        ("git revision", "a" * 12, "b" * 12 + "+"),
        ("numba", "0.68.0", "0.69.0"),
        ("cuda:0 driver", "580.1", "590.2"),
        ("numpy", "–", "2.4.6"),
    ]
    assert "| numba | 0.68.0 | 0.69.0 |" in markdown(comparison_sections(result))


def test_environments_alike_need_no_table(make: Make) -> None:
    result = compare_runs([make({"memcpy": QUIET})], [make({"memcpy": QUIET})])
    (section,) = comparison_sections(result)
    assert not section.cells
    assert section.sentence == "1 the same (not listed), of 1 case."
    assert [line[:2] for line in comparison_sections(result, every=True)[0].cells] == [
        ["same", "memcpy 32x32 4096x4096"]
    ]


def test_the_counts_say_how_many_of_a_verdict_are_listed(make: Make) -> None:
    result = compare_runs([make({"memcpy": QUIET, "copyGmem": QUIET})], [make({"memcpy": QUIET, "copyGmem": QUIET})])
    first, second = result.cases
    (section,) = comparison_sections(replace(result, cases=[replace(first, hidden=True), second]))
    assert section.sentence == "2 the same (1 of them listed), of 2 cases."


def test_a_comparison_is_plain_json(make: Make) -> None:
    sides = [make({"memcpy": [1.0], "copyGmem": QUIET})], [make({"memcpy": [1.0], "copyGmem": scaled(1.2)})]
    data = json.loads(json.dumps(compare_runs(*sides).data, allow_nan=False))
    assert data["counts"]["slower"] == 1
    assert data["cases"][0]["verdict"] == "slower"
    unknown = dict.fromkeys(("sm_clock_mhz", "energy_mj", "energy_uncertainty"))
    assert data["cases"][0]["base"] == {"elapsed_ms": 1.0, "units": 3, **unknown}


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_samples_that_are_no_times_are_not_compared_and_other_cases_are(make: Make, bad: float) -> None:
    times = {"memcpy": QUIET, "copyGmem": QUIET}
    broken = make(times)
    samples = {**broken.samples, broken.rows[0].case_id: {0: [bad]}}
    result = compare_runs([make(times)], [replace(broken, samples=samples)])
    verdicts = {case.case.kernel: (case.verdict, "not an elapsed time" in case.reason) for case in result.cases}
    assert verdicts == {"memcpy": (Verdict.NOT_COMPARABLE, True), "copyGmem": (Verdict.SAME, False)}


@pytest.mark.parametrize(
    ("threshold", "fdr", "confidence"),
    [(-0.01, 0.01, 0.95), (float("nan"), 0.01, 0.95), (0.02, 0, 0.95), (0.02, 0.01, 1)],
)
def test_rules_that_cannot_be_are_refused(threshold: float, fdr: float, confidence: float) -> None:
    with pytest.raises(UsageError, match="give a percentage"):
        Rules(threshold, fdr, confidence)


def test_a_comparison_needs_both_sides(make: Make) -> None:
    with pytest.raises(UsageError, match="on each side"):
        compare_runs([], [make({"memcpy": QUIET})])


def test_quiet_runs_compared_with_themselves_suggest_a_low_threshold(make: Make) -> None:
    runs = [make({"memcpy": scaled(1 + 0.0005 * number), "copyGmem": QUIET}, name=str(number)) for number in range(4)]
    result = compare_with_itself(runs)
    assert (result.pairs, result.judged, result.false, result.pairs_false) == (6, 12, 0, 0)
    assert result.suggested == 0.005
    for case in result.cases:
        assert case.seen is not None
        assert 0.005 <= case.seen < 0.025
    assert "False verdicts: 0 of 12" in self_section(result).sentence


def test_runs_that_drift_have_false_verdicts_and_suggest_a_higher_threshold(make: Make) -> None:
    runs = [make({"memcpy": scaled(factor)}, name=str(factor)) for factor in (1.0, 1.078)]
    result = compare_with_itself(runs)
    assert (result.false, result.pairs_false) == (1, 1)
    assert result.suggested == 0.1
    assert compare_with_itself(runs, Rules(threshold=0.1)).false == 0
    assert json.loads(json.dumps(result.data))["cases"][0]["largest"] == pytest.approx(1.078)


def test_one_run_cannot_be_compared_with_itself(make: Make) -> None:
    with pytest.raises(UsageError, match="give 2 or more runs"):
        compare_with_itself([make({"memcpy": QUIET})])


def test_quick_runs_compared_with_themselves_say_what_is_missing(make: Make) -> None:
    result = compare_with_itself([make({"memcpy": [1.0]}), make({"memcpy": [1.1]})])
    assert result.suggested is None
    assert "without --quick" in self_section(result).sentence


def test_a_clock_that_cannot_be_is_no_clock(make: Make) -> None:
    runs = [make({"memcpy": QUIET}, row={"sm_clock_mhz": clock}) for clock in (1980, -1)]
    assert only(compare_runs(runs[:1], runs[1:])) == (Verdict.SAME, "")


def test_names_are_short_and_tell_cases_apart() -> None:
    usual = Case("transpose", "transposeSmemPad", "cuda:0", "float32", 64, 64, None, Block(16, 16), 1)
    others = {
        usual: "transposeSmemPad 16x16 +1 64x64",
        replace(usual, device="cpu"): "transposeSmemPad 16x16 +1 64x64 cpu",
        replace(usual, compiler="nvrtc"): "transposeSmemPad 16x16 +1 64x64 nvrtc",
        replace(usual, stride=128): "transposeSmemPad 16x16 +1 64x64 stride 128",
        replace(usual, kernel="cupy", compiler="cupy", block=None, pad=None): "cupy 64x64",
    }
    name = namer([usual, *others])
    assert {case: name(case) for case in others} == others


def test_names_of_cases_have_the_gpu_where_there_are_several_and_of_a_row_its_length() -> None:
    usual = Case("reduction", "sumSequential", "cuda:0", "float32", 1, 4096, block=Block(256, 1))
    on_cpu, other = replace(usual, kernel="cpu", device="cpu", block=None), replace(usual, device="cuda:1")
    assert [*map(namer([usual, usual, on_cpu]), (usual, on_cpu))] == ["sumSequential 256x1 4096", "cpu 4096"]
    names = [*map(namer([usual, usual, other]), (usual, other))]
    assert names == ["sumSequential 256x1 4096 cuda:0", "sumSequential 256x1 4096 cuda:1"]


def test_verdicts_of_few_runs_say_what_they_do_not_know(make: Make) -> None:
    def runs(factor: float, count: int) -> list[Run]:
        return [make({"copyGmem": scaled(factor * (1 + number / 1e4))}, name=f"run{number}") for number in range(count)]

    for count, cautious in ((1, True), (2, False), (3, False)):
        result = compare_runs(runs(1.0, count), runs(1.1, count))
        assert only(result)[0] is Verdict.SLOWER
        notes = comparison_sections(result)[-1].notes
        assert any("do not include the noise between runs" in note for note in notes) is cautious
    # Runs beside the two tell it as well, and then a small change counts.
    result = compare_runs(runs(1.0, 1), runs(1.03, 1), beside=runs(1.0, 6))
    assert only(result)[0] is Verdict.SLOWER
    assert result.caution == ""
    assert only(compare_runs(runs(1.0, 1), runs(1.03, 1)))[0] is Verdict.AMBIGUOUS


def test_ambiguous_cases_come_by_the_chance_that_they_are_slower(make: Make) -> None:
    noisy = [1.0, 1.1, 0.9, 1.05, 0.95, 1.0]
    changes = {"copyGmem": 0.97, "naiveGmem": 1.04, "transposeSmem": 1.0}
    new = make({kernel: [factor * time for time in noisy] for kernel, factor in changes.items()})
    result = compare_runs([make(dict.fromkeys(changes, noisy))], [new])
    assert [(case.case.kernel, case.verdict) for case in result.cases] == [
        (kernel, Verdict.AMBIGUOUS) for kernel in ("naiveGmem", "transposeSmem", "copyGmem")
    ]
    likely, even, unlikely = (case.chance or 0.0 for case in result.cases)
    assert 1 > likely > 0.5 > even > unlikely > 0
