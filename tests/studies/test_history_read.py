"""Stored runs to series: which runs count, what belongs to one series, and what changed with it."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, Measured
from smembench.model.case import Block, Case
from smembench.model.errors import Dropped, UsageError
from smembench.model.measurement import Status, Trial
from smembench.report.figures.history import over_runs
from smembench.store import schema
from smembench.store.csv_files import CASES, table_text
from smembench.store.journal import Journal
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_folder import JOURNAL, RUN, read_description
from smembench.store.run_json import Description
from smembench.studies.accept import Acceptance
from smembench.studies.history.read import Device, Night, Skipped, read_nights
from smembench.studies.history.revisions import by_revision
from smembench.studies.history.series import Newest, Timeless, series_of, timeless
from smembench.views.history import history_data, history_sections, left_out, no_series, sparkline, without_times
from smembench.views.history_notes import short

Store = Callable[..., Path]

BEGIN = datetime(2026, 1, 1, 2, tzinfo=UTC)
GPU = {"name": "cuda:0", "kind": "cuda", "model": "NVIDIA H200", "uuid": "GPU-1", "driver": "580"}
CASE = "transpose/copyGmem/cuda:0/numba/float32/4096x4096/b32x32/warm"


@pytest.fixture
def store(tmp_path: Path, measured: Measured) -> Store:
    """Write the run of a night: one case with this median in ms; None for one that failed."""

    def make(
        night: int,
        elapsed: float | None = 1.0,
        *,
        device: dict[str, Any] = GPU,
        where: str = "results",
        row: dict[str, Any] | None = None,
        **run: Any,
    ) -> Path:
        began = BEGIN + timedelta(days=night)
        run_id = f"{began:%Y%m%dT%H%M%SZ}-nightly"
        folder = tmp_path / where / run_id
        folder.mkdir(parents=True)
        described = {
            "run_id": run_id,
            "started_at_utc": began.isoformat(),
            "seed": night,
            "config": {"name": "nightly"},
            "versions": {"numba": "0.61"},
            "devices": [device],
            "complete": True,
            **run,
        }
        measurement = measured("copyGmem", [] if elapsed is None else [elapsed], device=device["name"])
        rows = [
            dataclasses.replace(one, **(row or {})) for one in Run.of(Description(run_id=run_id), [measurement]).rows
        ]
        (folder / CASES).write_text(table_text(schema.COLUMNS, map(schema.to_fields, rows)))
        (folder / RUN).write_text(json.dumps(described))
        return folder

    return make


def read(root: Path, since: datetime | None = None) -> tuple[list[Night], dict[str, str]]:
    nights, skipped = read_nights(root, since)
    return nights, {one.path.name: one.reason for one in skipped}


def nights_of(store: Store, values: Sequence[float], **run: Any) -> None:
    for night, value in enumerate(values):
        store(night, value, **run)


def test_a_change_names_the_first_run_after_it_and_what_changed(tmp_path: Path, store: Store) -> None:
    for night in range(40):
        newer = night >= 30
        store(
            night,
            1.05 if newer else 1.0,
            device={**GPU, "driver": "590" if newer else "580"},
            git={"revision": f"{int(newer)}" * 40, "dirty": newer},
        )
    nights, skipped = read(tmp_path)
    (series,) = series_of(nights)
    (turn,) = series.turns
    assert not skipped
    assert (series.case_id, series.device, series.newest) == (CASE, Device("NVIDIA H200", "GPU-1"), Newest.SLOWER)
    assert turn.night.run_id == "20260131T020000Z-nightly"
    assert turn.change.ratio == pytest.approx(1.05)
    assert set(turn.changed) == {"cuda:0 driver was 580, is 590", f"git revision was {'0' * 12}, is {'1' * 12}+"}


def test_what_changed_on_a_night_on_which_the_case_failed_is_not_lost(tmp_path: Path, store: Store) -> None:
    for night in range(40):
        store(night, None if night == 30 else 1.0 + 0.05 * (night > 30), versions={"numba": f"0.{61 + (night >= 30)}"})
    (series,) = series_of(read(tmp_path)[0])
    assert len(series.times) == 39
    assert series.turns[0].changed == ["numba was 0.61, is 0.62"]


def test_another_gpu_or_host_begins_another_series(tmp_path: Path, store: Store) -> None:
    cpu = {"name": "cpu", "kind": "cpu", "model": "EPYC"}
    for night in range(30):
        store(night, 1.0 if night < 15 else 1.5, device={**GPU, "uuid": "GPU-1" if night < 15 else "GPU-2"})
        store(night, 2.0 if night < 15 else 3.0, device=cpu, where="cpu", host={"name": "a" if night < 15 else "b"})
    series = series_of(read(tmp_path)[0])
    assert {one.device for one in series} == {
        Device("NVIDIA H200", "GPU-1"),
        Device("NVIDIA H200", "GPU-2"),
        Device("EPYC", "a"),
        Device("EPYC", "b"),
    }
    assert all(one.newest is Newest.SAME for one in series)


def test_a_gpu_has_one_series_whatever_its_host_calls_it(tmp_path: Path, store: Store) -> None:
    for night in range(12):
        store(night, 1.0 if night < 6 else 1.1, device={**GPU, "name": f"cuda:{night % 2}"})
    nights, _ = read(tmp_path)
    (series,) = series_of(nights)
    assert (len(series.times), series.newest, series.case_id) == (12, Newest.SLOWER, CASE.replace("cuda:0", "cuda:1"))
    accepted = Acceptance(
        case=CASE,
        run=nights[6].run_id,
        started_at_utc=nights[6].started,
        devices=frozenset({"GPU-1"}),
        reason="as agreed",
        accepted_at_utc=nights[6].started,
    )
    assert series_of(nights, [CASE], accepted=[accepted])[0].newest is Newest.ACCEPTED


def test_a_run_that_was_cut_off_counts_with_what_its_journal_has(tmp_path: Path, store: Store) -> None:
    nights_of(store, [1.0] * 3)
    sweep = {"sweep": [{"problem": "transpose", "device": ["cuda:0"]}]}
    folder, begun = (store(night, 2.0, complete=None, config=sweep) for night in (3, 4))  # a cases.csv after Ctrl-C
    block = Block(32, 32)
    trial = Trial(
        Case("transpose", "copyGmem", "cuda:0", "float32", 4096, 4096, None, block),
        *(0, Status.OK, BEGIN.isoformat()),
        verified=True,
        samples=(1.5, 1.5),
    )
    for path, trials in ((folder, [trial]), (begun, [])):
        writer = Journal.create(path / JOURNAL, read_description(path))
        for item in trials:
            writer.append(item)
        writer.close()
    with (folder / JOURNAL).open("ab") as stream:
        stream.write(b"torn")
    with pytest.warns(Dropped, match="line 3: cut off"):
        nights, skipped = read_nights(tmp_path)
    (series,) = series_of(nights)
    assert (series.case_id, series.times) == (CASE, [1.0, 1.0, 1.0, 1.5])
    assert [night.complete for night in nights] == [True, True, True, False]
    (unread, part) = left_out(nights, skipped)
    assert "nothing is measured yet" in unread
    assert "1 run not finished" in part
    assert f"--resume {folder}" in part


def test_damaged_runs_are_named_and_skipped(tmp_path: Path, store: Store) -> None:
    faults: dict[str, Callable[[Path], object]] = {
        "journal.jsonl, line 1: damaged: it has no checksum": lambda run: (run / CASES).rename(run / JOURNAL),
        "run.json: damaged: it is not JSON": lambda run: (run / RUN).write_text("{"),
        "cases.csv: it is empty": lambda run: (run / CASES).write_text(""),
        "cases.csv has no rows": lambda run: (run / CASES).write_text(",".join(schema.COLUMNS) + "\n"),
        "cases.csv, line 2: damaged: it has ": lambda run: (run / CASES).write_text((run / CASES).read_text()[:-20]),
        "an ok case has the elapsed_ms ''": lambda run: replace(run, ",1.0,", ",,"),
        "an ok case has the elapsed_ms 'nan'": lambda run: replace(run, ",1.0,", ",nan,"),
        "cases.csv: cannot be read ('utf-8'": lambda run: (run / CASES).write_bytes(b"\xff\xfe\x00"),
        "an ok case has the elapsed_ms '1e-320'": lambda run: replace(run, ",1.0,", ",1e-320,"),
        "field larger than field limit": lambda run: (run / CASES).write_text(
            ",".join(schema.COLUMNS) + "\n" + '"' + "x" * 200_000
        ),
    }
    folders = {}
    for night, (reason, spoil) in enumerate(faults.items()):
        folder = store(night)
        spoil(folder)
        folders[folder.name] = reason
    kept = store(91)
    copied = tmp_path / "copies" / kept.name
    shutil.copytree(kept, copied)
    nights, skipped = read(tmp_path)
    assert [night.run_id for night in nights] == [kept.name]
    for name, reason in folders.items():
        assert reason.strip() in skipped[name]
    assert "the same run as" in skipped[kept.name]


def replace(run: Path, old: str, new: str) -> None:
    text = (run / CASES).read_text()
    assert old in text
    (run / CASES).write_text(text.replace(old, new))


def test_other_schema_versions_and_bare_files_are_read_by_their_columns(tmp_path: Path, store: Store) -> None:
    store(0)
    future, past, bare = store(1), store(2), store(3)
    text = (future / CASES).read_text()
    lines = [f"new_column,{line}" for line in text.splitlines()]
    (future / CASES).write_text("\n".join(line.replace(",1,2026", ",7,2026") for line in lines) + "\n")
    short_rows = [",".join(line.split(",")[: len(schema.REQUIRED)]) for line in (past / CASES).read_text().splitlines()]
    (past / CASES).write_text("\n".join(short_rows) + "\n")
    (bare / RUN).unlink()
    nights, skipped = read(tmp_path)
    assert not skipped
    assert len(nights) == 4
    by_device = {one.device: len(one.times) for one in series_of(nights)}
    assert by_device == {Device("NVIDIA H200", "GPU-1"): 3}  # the bare file does not say which device it was


@pytest.mark.parametrize("true", ["TRUE", "True", "true"])
def test_a_flag_means_the_same_to_every_reader(tmp_path: Path, store: Store, true: str) -> None:
    """As spreadsheets write it, too."""
    folder = store(1)
    replace(folder, ",true,", f",{true},")
    assert load(folder).rows[0].verified
    (night,), skipped = read(tmp_path)
    assert (len(night.times), skipped) == (1, {})
    replace(folder, f",{true},", ",yes,")
    assert "'yes' is neither true nor false" in read(tmp_path)[1][folder.name]
    with pytest.raises(UsageError, match="verified holds 'yes'"):
        load(folder)


def test_since_leaves_out_what_was_before(tmp_path: Path, store: Store) -> None:
    nights_of(store, [1.0] * 10)
    nights, _ = read(tmp_path, BEGIN + timedelta(days=4))
    assert [night.started.day for night in nights] == [5, 6, 7, 8, 9, 10]
    assert read(tmp_path, BEGIN + timedelta(days=40)) == ([], {})


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        read_nights(tmp_path / "nowhere")


def test_slower_series_come_first_and_the_page_says_so(tmp_path: Path, store: Store) -> None:
    nights_of(store, [1.0] * 30)
    nights_of(store, [1.0] * 25 + [0.9] * 5, device={**GPU, "uuid": "GPU-2"}, where="b")
    nights_of(store, [1.0] * 25 + [1.1] * 5, device={**GPU, "uuid": "GPU-3"}, where="c")
    nights_of(store, [1.0, 1.0], device={**GPU, "uuid": "GPU-4"}, where="d")
    nights, skipped = read_nights(tmp_path)
    series = series_of(nights)
    assert [one.newest for one in series] == [Newest.SLOWER, Newest.FASTER, Newest.SAME, Newest.SHORT]
    slower, faster, same, few = history_sections(series)
    assert slower.heading == "NVIDIA H200 cuda:0 GPU-3 · 30 runs, 2026-01-01 to 2026-01-30"
    assert slower.cells == [
        ["copyGmem float32 4096x4096 b32x32", "30", "▁" * 11 + "█" * 5, "1.1000", "1.1000", "+10.0 %", "2026-01-26"]
    ]
    assert slower.sentence == "Unaccepted slowdowns: 1 of 1 case."
    change, then = slower.notes
    assert change == (
        "20260126T020000Z-nightly: 1 slower, copyGmem float32 4096x4096 b32x32 by +10.0 %; "
        "driver, clocks, versions and code unchanged"
    )
    assert f"smembench accept {tmp_path}/c/20260130T020000Z-nightly --case {CASE} " in then
    assert faster.cells[0][5] == "-10.0 %"
    assert (same.cells[0][5], same.notes) == ("", [])
    assert (few.cells, few.notes) == ([], ["fewer than 3 runs: copyGmem float32 4096x4096 b32x32"])
    data = json.loads(json.dumps(history_data(nights, skipped, series)))
    assert data["series"][0]["changes"][0]["ratio"] == pytest.approx(1.1)
    assert data["series"][0]["changes"][0]["kind"] == "step"
    assert len(data["series"][0]["elapsed_ms"]) == len(data["series"][0]["run_ids"]) == 30


def test_causes_are_those_of_the_case_that_is_named() -> None:
    """Of the slowest of three that became slower; the padding that is gone gives each other conflicts."""
    nights, _ = read_nights(ROOT / "results/reference/slowdown")
    (section, *_) = history_sections(series_of(nights))
    assert section.notes[0] == (
        "20261122T220715Z-slowdown: 3 slower, ownTile float32 1024x1024 b32x32 by +85.3 %; "
        "wavefronts per shared load was 1, is 32; registers per thread was 14, is 12"
    )


def test_a_case_that_failed_in_its_newest_run_is_said(tmp_path: Path, store: Store) -> None:
    nights_of(store, [1.0] * 8)
    store(8, None)
    series = series_of(read(tmp_path)[0])
    (section,) = history_sections(series)
    (note,) = section.notes
    assert note.startswith("copyGmem float32 4096x4096 b32x32: no time from the newest run: failed: ")
    store(9)
    (section,) = history_sections(series_of(read(tmp_path)[0]))
    assert section.notes == []


@pytest.mark.parametrize(
    "state",
    [{"verified": False}, {"throttle_reasons": "hw_thermal"}, {"cpu_waiting": 0.5}, {"status": "wrong_result"}],
    ids=lambda state: next(iter(state)),
)
def test_times_that_cannot_be_trusted_are_in_no_series(tmp_path: Path, store: Store, state: dict[str, Any]) -> None:
    nights_of(store, [1.0] * 8)
    for night in range(8, 12):
        store(night, 1.5, row=state)
    (series,) = series_of(read(tmp_path)[0])
    assert (series.newest, len(series.times), series.level) == (Newest.SAME, 8, 1.0)
    assert series.unusable


def test_without_a_series_the_reason_is_told(tmp_path: Path, store: Store) -> None:
    store(0, 1.0, row={"cpu_waiting": 0.5})
    nights = read(tmp_path)[0]
    assert series_of(nights) == []
    assert "measured on a busy host" in no_series(timeless(nights))
    assert "no run says on which device" in no_series([])


def test_a_case_with_few_times_says_why_its_other_runs_give_none(tmp_path: Path, store: Store) -> None:
    for night in range(5):
        store(night, 1.0, row={"cpu_waiting": 0.5 if night else 0.0})
    (section,) = history_sections(series_of(read(tmp_path)[0]))
    (note,) = section.notes
    assert note.startswith(
        "fewer than 3 times to compare: copyGmem float32 4096x4096 b32x32; no such time from 4 runs: "
    )
    assert "busy host" in note


def test_cases_without_any_time_are_named_with_the_reason(tmp_path: Path, store: Store) -> None:
    nights_of(store, [1.0] * 4)
    other = CASE.replace("copyGmem", "memcpy")
    for night in range(4):
        store(night, 1.0, where="busy", row={"case_id": other, "cpu_waiting": 0.5}, seed=100 + night)
    nights = read(tmp_path)[0]
    assert len(series_of(nights)) == 1
    (one,) = timeless(nights)
    assert (one.case_id, one.device.id) == (other, "GPU-1")
    (line,) = without_times([one], nights)
    assert line.startswith("no time can be compared of memcpy float32 4096x4096 b32x32: measured on a busy host")
    assert timeless(nights, {CASE}) == []
    data = history_data(nights, [], [], [one])
    assert data["without_times"] == [{"case_id": other, "device_id": "GPU-1", "reason": one.reason}]
    many = [Timeless(f"{other}/{number}", one.device, f"failed: {number}") for number in range(9)]
    assert [line[-25:] for line in without_times(many, nights)[3:]] == ["reasons: --json lists all"]


def test_the_newest_value_stands_beside_the_level(tmp_path: Path, store: Store) -> None:
    nights_of(store, [1.0] * 7 + [1.2])
    (series,) = series_of(read(tmp_path)[0])
    (section,) = history_sections([series])
    assert section.cells[0][3:6] == ["1.2000", "1.0000", ""]
    assert history_data([], [], [series])["series"][0]["newest_ms"] == 1.2


@pytest.mark.parametrize(("runs", "count"), [(3, "3 of 6"), (5, "5 of 6"), (6, "")])
def test_a_short_series_says_how_many_runs_it_has_of_those_it_takes(
    tmp_path: Path, store: Store, runs: int, count: str
) -> None:
    nights_of(store, [1.0] * runs)
    (section,) = history_sections(series_of(read(tmp_path)[0]))
    assert section.cells[0][5] == count
    assert any("6" in note for note in section.notes) == bool(count)


def test_one_run_is_no_plural(tmp_path: Path, store: Store) -> None:
    nights_of(store, [1.0])
    (section,) = history_sections(series_of(read(tmp_path)[0]))
    assert "· 1 run, 2026-01-01" in section.heading


def test_runs_that_do_not_say_which_gpu_are_in_no_series(tmp_path: Path, store: Store) -> None:
    nights_of(store, [1.0] * 4, device={**GPU, "uuid": None})
    nights_of(store, [1.0] * 4, where="told")
    nights, skipped = read_nights(tmp_path)
    (series,) = series_of(nights)
    assert len(series.times) == 4
    (line,) = left_out(nights, skipped)
    assert "left out of 4 runs, such as 20260101T020000Z-nightly" in line


def test_many_skipped_folders_are_one_line() -> None:
    skipped = [Skipped(Path(f"run{number}"), f"not finished; go on with run{number}") for number in range(312)]
    (line,) = left_out([], [*skipped, Skipped(Path("last"), "torn")])
    assert "skipped 313 folders: 312 not finished, 1 torn" in line
    assert len(left_out([], skipped[:2])) == 2


def meant(runs: str, case: str = "*", device: str = "GPU-1") -> Acceptance:
    """An acceptance of the level of a night, by its day in January."""
    began = BEGIN + timedelta(days=int(runs) - 1)
    return Acceptance(
        case=case,
        run=f"{began:%Y%m%dT%H%M%SZ}-nightly",
        started_at_utc=began,
        devices=frozenset({device}),
        reason="as agreed",
        accepted_at_utc=began,
    )


STEP = [1.0] * 8 + [1.05] * 4
DRIFT = [1.0] * 10 + [1 + 0.002 * night for night in range(30)]


@pytest.mark.parametrize(
    ("times", "accepted", "newest"),
    [
        (STEP, [], Newest.SLOWER),
        (STEP, [meant("12")], Newest.ACCEPTED),
        (STEP, [meant("9")], Newest.ACCEPTED),
        (STEP, [meant("8")], Newest.SLOWER),  # before the change
        (STEP, [meant("9", "matmul/*")], Newest.SLOWER),
        (STEP, [meant("9", device="GPU-2")], Newest.SLOWER),
        ([*STEP, *[1.1] * 4], [meant("12")], Newest.SLOWER),  # and slower again
        ([*STEP, *[1.1] * 8], [meant("9")], Newest.SLOWER),
        ([*STEP, *[1.1] * 4], [meant("12"), meant("14")], Newest.ACCEPTED),
        ([*STEP, *[1.03] * 4], [], Newest.SLOWER),  # a part of it came back
        ([*STEP, *[1.0] * 4], [], Newest.FASTER),
        ([*STEP, *[1.02] * 4], [meant("12")], Newest.FASTER),
        (DRIFT, [], Newest.SLOWER),
        (DRIFT[:25], [meant("25")], Newest.ACCEPTED),
        (DRIFT, [meant("25")], Newest.SLOWER),  # and went on
    ],
)
def test_a_slower_level_is_news_until_it_is_accepted_or_gone(
    tmp_path: Path, store: Store, times: Sequence[float], accepted: Sequence[Acceptance], newest: Newest
) -> None:
    nights_of(store, times)
    (series,) = series_of(read(tmp_path)[0], accepted=accepted)
    assert series.newest is newest
    assert len({turn.change.index for turn in series.turns}) == len(series.turns)
    (section,) = history_sections([series])
    assert section.sentence.startswith(f"Unaccepted slowdowns: {int(newest is Newest.SLOWER)} of 1")
    assert any("as agreed" in note for note in section.notes) == any(turn.accepted for turn in series.turns)


def test_only_the_chosen_cases_are_looked_at(tmp_path: Path, store: Store) -> None:
    store(0)
    nights, _ = read(tmp_path)
    assert [one.case_id for one in series_of(nights, [CASE])] == [CASE]
    assert series_of(nights, ["another"]) == []


def test_a_sparkline_has_the_height_of_its_times() -> None:
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8]) == "▁▂▃▄▅▆▇█"
    assert sparkline([1.0] * 100) == "▁" * 16
    assert sparkline([1.0, 1.001]) == "▁▁"  # noise is no mountain
    assert sparkline([1.0] * 1000 + [2.0] * 5) == "▁" * 15 + "█"  # the newest shows
    assert all(len(sparkline([1.0] * count)) == min(count, 16) for count in range(1, 300))


def test_a_case_is_short_without_what_nearly_every_case_says() -> None:
    assert short(CASE) == "copyGmem float32 4096x4096 b32x32"
    assert short("matmul/tiled/cuda:0/cupy/float32/8x8x8/cold") == "tiled cupy float32 8x8x8 cold"
    assert short("unknown") == "unknown"


def test_by_revision_a_point_is_the_median_of_its_runs_and_a_change_begins_with_a_commit(
    tmp_path: Path, store: Store
) -> None:
    for night in range(40):
        commit = night // 2
        odd = 1.0 if night == 12 else 0.0  # one bad night of two, which a median of three would hide
        store(night, (1.0 if commit < 14 else 1.05) + odd, git={"revision": f"{commit:02}" * 20, "dirty": night == 13})
    store(40, 1.05)
    nights, without = by_revision(read(tmp_path)[0])
    assert without == 1
    dirty = "06" * 6 + "+"
    assert [night.run_id for night in nights[5:9]] == ["05" * 6, "06" * 6, dirty, "07" * 6]
    (series,) = series_of(nights)
    assert series.newest is Newest.SLOWER
    assert series.turns[-1].night.revision == "14" * 6
    assert series.times[-1] == pytest.approx(1.05)
    (section,) = history_sections([series])
    assert "21 revisions, 000000000000 to 191919191919" in section.heading
    assert any(cell == "14" * 6 for cell in section.cells[0])
    assert any(note.startswith("141414141414: 1 slower") for note in section.notes)
    chart = over_runs([series])
    assert chart is not None
    axis = chart.spec["layer"][-1]["encoding"]["x"]  # type: ignore[index]
    assert (axis["type"], axis["sort"][:2]) == ("nominal", ["00" * 6, "01" * 6])


def test_a_case_whose_id_has_no_device_has_a_history(tmp_path: Path, store: Store) -> None:
    for night in range(3):
        store(night, 1.0, row={"case_id": "=1+1"})
    store(3, 1.0, row={"case_id": "=2+2", "verified": False})
    nights, _ = read(tmp_path)
    (series,) = series_of(nights)
    assert (series.case_id, series.times) == ("=1+1", [1.0, 1.0, 1.0])
    assert [one.case_id for one in timeless(nights)] == ["=2+2"]
