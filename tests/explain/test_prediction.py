"""Predictions from traces: what counters said of them, and how they stand beside measurements."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.console import Console

from campaign import CAMPAIGN
from conftest import Measured
from programs import NUMBA, numba_kernel
from smembench.explain import analysis, counters, prediction
from smembench.explain.analysis import explain
from smembench.explain.counters import ALLOWED, Comparison
from smembench.explain.ncu_child import Work
from smembench.explain.prediction import predict, trace_together
from smembench.explain.trace import Trace
from smembench.kernels.kernel import Kernel
from smembench.kernels.transpose.cuda import transpose_smem
from smembench.model.case import Case
from smembench.model.device import DeviceInfo
from smembench.model.measurement import Measurement, Prediction, Status, Trial
from smembench.model.user_launch import UserLaunch
from smembench.store.assemble import assemble
from smembench.store.relations import relate
from smembench.store.run import Run
from smembench.store.schema import row_of
from smembench.studies.explain import cases
from smembench.toolchains import numba
from smembench.views.explain_counters import comparison, counter_records
from smembench.views.records import csv as as_csv
from smembench.views.sections import Section, sections
from smembench.views.sentences import sentence
from smembench.views.table import draw
from traces import case

TYPES_OF_BLOCKS = (("float32", "b32x32"), ("float64", "b16x16"), ("float32", "b32x8"))
COUNTED: dict[str, list[tuple[str, float]]] = defaultdict(list)
"""Of a case id, figures that Nsight Compute counted, of one type per block."""
with (Path(__file__).parents[2] / "results/reference/h200-explain.csv").open(encoding="utf-8") as _stream:
    for _row in csv.DictReader(_stream):
        _dtype, _, _block = _row["case_id"].split("/")[4:7]
        if _row["agrees"] and (_dtype, _block) in TYPES_OF_BLOCKS:
            COUNTED[_row["case_id"]].append((_row["figure"], float(_row["counted"])))
ACCESSED_ALIKE = [
    name + end for name in ("setRowReadRow", "setColReadCol", "setRowReadCol") for end in ("Pad", "Dyn", "DynPad")
]
"""Kernels whose tiles are declared as those of setColReadRow's, by kernels of the same pattern."""
SOURCES = [one for one in NUMBA if one.blocks and (CAMPAIGN > 1 or one.name not in ACCESSED_ALIKE)]
LADDER = {"memcpy": 0.9, "copyGmem": 1.0, "naiveGmem": 4.0, "transposeSmem": 2.5, "transposeSmemPad": 1.25}


@pytest.mark.parametrize("kernel", SOURCES, ids=lambda kernel: kernel.name)
def test_every_kernel_with_source_can_be_predicted(kernel: Kernel) -> None:
    (planned, *_) = cases(kernel.name, n=768)
    predicted = asdict(predict(planned, "9.0"))
    assert predicted.pop("unexplained") is None
    for kind in ("load", "store"):
        conflict, line = predicted[f"{kind}_conflict"], predicted.pop(f"{kind}_line")
        assert (line is not None) == (conflict is not None and conflict > 1)
    absent = {name for name in predicted if "conflict" in name and not kernel.shared_bytes(planned)}
    if not kernel.name.startswith("constant"):
        absent.add("constant_addresses")
    if numba_kernel(planned).zeroed:
        absent.add("store_sectors")  # it adds to the output by atomics
    assert {name for name, value in predicted.items() if value is None} == absent
    assert all(math.isfinite(value) and value > 0 for value in predicted.values() if value is not None)


@pytest.mark.parametrize("case_id", sorted(COUNTED))
def test_predictions_are_still_what_an_h200_counted(case_id: str) -> None:
    _, kernel, _, _, dtype, size, block, *pad, _ = case_id.split("/")
    width = int(pad[0].removeprefix("pad")) if pad else 1
    explained = explain(case(kernel, block.removeprefix("b"), dtype, width, int(size.split("x")[0])), quick=True)
    assert explained.case.id == case_id
    for figure, counted in COUNTED[case_id]:
        what, *_, kind = figure.split()
        predicted = explained.wavefronts(kind) if what == "wavefronts" else explained.sectors(kind)
        assert predicted == pytest.approx(counted, abs=ALLOWED)


def counted(
    monkeypatch: pytest.MonkeyPatch,
    planned: Case,
    wavefronts: float,
    sectors: float,
    shared_requests: int = 100,
    ways: Sequence[counters.Shared] = counters.PLAIN,
) -> list[Comparison]:
    """The comparison with a hardware that counts these figures a request of shared memory, in these ways alone."""
    reading = dict.fromkeys(counters.METRICS, 100.0)
    for entry in (*counters.PLAIN, *ways):
        reading[entry.requests] = shared_requests if entry in ways else 0
        reading[entry.wavefronts] = wavefronts * reading[entry.requests]
    for short in counters._SHORT.values():
        reading[counters._SECTORS.format(short)] = sectors * reading[counters._GLOBAL_REQUESTS.format(short)]

    def profile(
        work: Work, metrics: Sequence[str], *, optional: Sequence[str], **how: object
    ) -> list[dict[str, float]]:
        assert set(metrics) <= set(reading) <= {*metrics, *optional}
        return [reading] * len(work.cases)

    monkeypatch.setattr(counters, "profile", profile)
    return counters.compare([planned], "9.0")


NEARLY, TOO_MANY = (1 + share * ALLOWED for share in (0.9, 1.1))


@pytest.mark.parametrize(
    ("wavefronts", "sectors", "agreeing"),
    [
        (1, 4, (True, True)),
        (NEARLY, 4.004, (True, True)),
        (TOO_MANY, 4, (False, True)),
        (1, 4.01, (True, False)),
        (1, 3.99, (True, False)),
    ],
)
def test_predictions_are_held_against_counters(
    monkeypatch: pytest.MonkeyPatch, wavefronts: float, sectors: float, agreeing: tuple[bool, bool]
) -> None:
    *judged, requests, moved, dram, occupancy = counted(monkeypatch, case("transposeSmemPad"), wavefronts, sectors)
    assert [item.figure for item in judged] == [
        *("wavefronts per shared load", "wavefronts per shared store"),
        *("sectors per global load", "sectors per global store"),
    ]
    assert [item.agrees for item in judged] == [agree for agree in agreeing for _ in range(2)]
    assert [item.predicted for item in judged] == [1, 1, 4, 4]
    assert [item.counted for item in judged] == pytest.approx([wavefronts] * 2 + [sectors] * 2)
    assert (requests.predicted, requests.counted, requests.agrees) == (4096 * 4096 / 32, 100, None)
    assert (moved.predicted, moved.agrees) == (4096 * 4096 * 4, None)
    assert moved.counted == pytest.approx(32 * sectors * 100)
    assert (dram.predicted, dram.agrees) == (2 * 4096 * 4096 * 4, None)
    assert (occupancy.predicted, occupancy.agrees) == (100, None)


def test_bytes_of_shared_memory_are_not_predicted_of_dram(monkeypatch: pytest.MonkeyPatch) -> None:
    (dram,) = (
        item for item in counted(monkeypatch, case("setRowReadRow", dtype="int32"), 1, 4) if item.figure == "DRAM bytes"
    )
    assert (dram.predicted, dram.counted, dram.agrees) == (None, 100, None)


@pytest.mark.parametrize(
    ("kernel", "requests", "expected"),
    [
        ("copyGmem", 0, []),
        ("copyGmem", 100, [(None, 1, False)] * 2),
        ("transposeSmemPad", 0, [(1, 0, False)] * 2),
    ],
)
def test_shared_requests_that_only_one_side_knows_disagree(
    monkeypatch: pytest.MonkeyPatch, kernel: str, requests: int, expected: list[tuple[float | None, float, bool]]
) -> None:
    result = counted(monkeypatch, case(kernel), 1, 4, requests)
    shared = [item for item in result if "shared" in item.figure]
    assert [(item.predicted, item.counted, item.agrees) for item in shared] == expected


def test_matrices_and_asynchronous_copies_have_counters_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """mmaAsync has no plain load or store; without the counters that see its accesses nothing is said of them."""
    planned = case("mmaAsync", "16x16", "bfloat16", n=256)
    result = counted(monkeypatch, planned, 4, 16, ways=counters.OTHER)
    shared = {item.figure: item for item in result if "wavefronts" in item.figure}
    assert shared.keys() == {"wavefronts per matrix load", "wavefronts per asynchronous copy"}
    assert all((item.predicted, item.counted) == (4, 4) for item in shared.values())
    # Copies' data arrive in parts, so that counters see more of them.
    assert [item.agrees for item in shared.values()] == [True, None]
    assert not any("wavefronts" in item.figure for item in counted(monkeypatch, planned, 4, 16, ways=()))


def test_a_comparison_as_table_and_records() -> None:
    padded, copy = case("transposeSmemPad"), case("copyGmem", "16x16")
    result = [
        Comparison(padded, "wavefronts per shared load", 1.0, 1.25, False),
        Comparison(copy, "sectors per global load", 4.0, 4.0, True),
        Comparison(copy, "occupancy %", None, 93.5),
    ]
    section = comparison(result, "heading")
    assert [line[-3:] for line in section.cells] == [["1.00", "1.25", "NO"], ["4.00", "4.00", "yes"], ["", "93.5", ""]]
    assert "1 of 2 predictions agree" in section.sentence
    lines = as_csv(counter_records(result)).splitlines()
    assert lines[0] == "case_id,figure,predicted,counted,agrees"
    assert lines[1] == f"{padded.id},wavefronts per shared load,1.0,1.25,false"
    assert lines[3] == f"{copy.id},occupancy %,,93.5,"


def assembled(planned: Case, status: Status = Status.OK) -> Measurement:
    """The measurement of a case with made-up samples, on a GPU of capability 9.0."""
    info = DeviceInfo(
        name=planned.device, kind=planned.kind, model="made up", memory_bytes=10**9, compute_capability="9.0"
    )
    samples = (1.0,) * 10 if status is Status.OK else ()
    trial = Trial(planned, 0, status, "2026-01-01T00:00:00+00:00", verified=True, samples=samples)
    (measurement,) = assemble([planned], [trial], {info.name: info}, {info.kind: 0.005}, predict)
    return measurement


def test_a_measurement_carries_its_prediction() -> None:
    planned = replace(case("transposeSmem"), device="cuda:1", cache="cold")
    result = assembled(planned).prediction
    assert replace(result, load_line=None) == Prediction(32, 1, 4, 4, 1.0)
    lines = Path(transpose_smem.__file__).read_text().splitlines()
    assert result.load_line is not None
    assert "= tile[" in lines[result.load_line - 1]


@pytest.mark.parametrize("planned", [case("memcpy"), replace(case("copyGmem"), device="cpu")], ids=["memcpy", "cpu"])
def test_what_cannot_be_traced_is_measured_without_a_prediction(planned: Case) -> None:
    measurement = assembled(planned)
    assert (measurement.ok, measurement.prediction) == (True, Prediction())


def test_a_failure_to_trace_spoils_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> Trace:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(analysis, "explain_ptx", broken)
    monkeypatch.setattr(prediction, "_traced", {})
    measurement = assembled(case("copyGmem"))
    assert (measurement.ok, measurement.prediction) == (
        True,
        Prediction(unexplained="not explained: RuntimeError: out of luck"),
    )
    assert measurement.notes == "not explained: RuntimeError: out of luck"


def test_without_compilers_a_measurement_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba, "cuda_libraries", lambda: {"NVVM": "", "nvJitLink": "13.0"})
    monkeypatch.setattr(numba, "can_compile", lambda: False)
    monkeypatch.setattr(prediction, "_traced", {})
    measurement = assembled(case("copyGmem"))
    assert measurement.ok
    assert measurement.prediction.load_sectors is None
    assert measurement.notes is not None
    assert measurement.notes.startswith("not explained: copyGmem: to explain it, install NVVM: pip install")


def test_cases_are_traced_by_several_processes_as_they_are_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = ("32x32", "16x8")
    cases = [case("transposeSmemPad", n=n, block=block) for n in range(33, 42) for block in blocks]
    alone = [predict(entry, "9.0") for entry in cases]
    monkeypatch.setattr(prediction, "_traced", {})
    progress: list[tuple[int, int]] = []
    trace_together([*cases, *cases, case("copyGmem", n=8)], lambda entry, number, of: progress.append((number, of)))
    assert progress in ([], [(number, 19) for number in range(1, 20)])  # none on a single core
    assert [predict(entry, "9.0") for entry in cases] == alone


def test_a_file_that_ends_its_process_or_prints_leaves_the_others_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = "from numba import cuda\n\n@cuda.jit\ndef f(x):\n    x[cuda.grid(1)] = 1\n"
    starts = {"ends": "import os\nos._exit(0)\n", "prints": "import os\nos.system('echo text')\n", "fine": ""}
    cases = []
    for name, start in starts.items():
        (tmp_path / f"{name}.py").write_text(start + kernel)
        launch = UserLaunch(f"{tmp_path}/{name}.py:f", ("float32[64]",), (2,), (32,))
        cases.append(Case("time", name, "cuda:0", "float32", 1, 1, launch=launch))
    monkeypatch.setattr(prediction, "_traced", {})
    monkeypatch.setattr(prediction, "_cores", lambda: 1)
    trace_together(cases, lambda entry, number, of: None)
    ended, *others = (predict(entry, "9.0") for entry in cases)
    assert (ended.unexplained or "").startswith("not explained: the process that imported its file ended early")
    assert [(entry.unexplained, entry.store_sectors) for entry in others] == [(None, 4)] * 2


def test_a_file_that_never_ends_its_import_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "waits.py").write_text("import time\ntime.sleep(600)\n")
    launch = UserLaunch(f"{tmp_path}/waits.py:f", ("float32[64]",), (2,), (32,))
    waits = Case("time", "waits", "cuda:0", "float32", 1, 1, launch=launch)
    monkeypatch.setattr(prediction, "_traced", {})
    monkeypatch.setattr(prediction, "_SILENCE_SECONDS", 0.1)
    trace_together([waits], lambda entry, number, of: None)
    assert "did not answer" in (predict(waits, "9.0").unexplained or "")


def test_a_case_that_failed_has_no_prediction() -> None:
    assert assembled(case("copyGmem"), Status.FAILED).prediction == Prediction()


def ladder(measured: Measured, block: str = "32x32") -> list[Measurement]:
    """The transposes, with what was predicted of them."""
    planned = [(case(kernel, block), ms) for kernel, ms in LADDER.items()]
    return [
        replace(
            measured(result.kernel, [ms] * 3, block=result.block, pad=result.pad), prediction=predict(result, "9.0")
        )
        for result, ms in planned
    ]


def drawn(result: list[Section], width: int) -> str:
    stream = io.StringIO()
    draw(Console(file=stream, width=width, highlight=False), result)
    return stream.getvalue()


@pytest.mark.parametrize(("width", "shown"), [(103, False), (104, True)])
def test_predictions_are_shown_where_there_is_room(measured: Measured, width: int, shown: bool) -> None:
    result = ladder(measured)
    text = drawn(sections(Run([row_of("run", item, relate(result)) for item in result])), width)
    assert max(map(len, text.splitlines())) <= width
    for words in ("ld / st", "sectors", "pancy", "32 / 1", "4 / 32", "100 %"):
        assert (words in text) == shown
    assert "transposeSmemPad" in text


def test_the_sentence_says_why_padding_helps(measured: Measured) -> None:
    text = sentence(Run([row_of("run", item, {}) for item in ladder(measured, "16x16")]))
    assert "8-way conflicts of loads become 2-way conflicts of loads and 2-way conflicts of stores" in text
