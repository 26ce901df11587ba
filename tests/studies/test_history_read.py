"""Stored runs to series: which runs count, what belongs to one series, and what changed with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from conftest import Measured
from smembench.model.errors import UsageError
from smembench.store import schema
from smembench.store.csv_files import table_text
from smembench.store.run import Run
from smembench.store.run_folder import CASES, JOURNAL, RUN
from smembench.store.run_json import Description
from smembench.studies.history.read import Device, Night, read_nights
from smembench.studies.history.series import Newest, series_of
from smembench.views.history import history_data, history_sections, short, sparkline

Store = Callable[..., Path]

BEGIN = datetime(2026, 1, 1, 2, tzinfo=UTC)
GPU = {"name": "cuda:0", "kind": "cuda", "model": "NVIDIA H200", "uuid": "GPU-1", "driver": "580"}
CASE = "transpose/copyGmem/cuda:0/numba/float32/4096x4096/b32x32/warm"


@pytest.fixture
def store(tmp_path: Path, measured: Measured) -> Store:
    """Write the run of a night: one case with this median in ms; None for one that failed."""

    def make(
        night: int, elapsed: float | None = 1.0, *, device: dict[str, Any] = GPU, where: str = "results", **run: Any
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
        rows = Run.of(Description(run_id=run_id), [measurement]).rows
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


def test_partial_and_damaged_runs_are_named_and_skipped(tmp_path: Path, store: Store) -> None:
    faults: dict[str, Callable[[Path], object]] = {
        "not finished; continue with: smembench run --resume": lambda run: (run / CASES).rename(run / JOURNAL),
        "run.json: damaged: it is not JSON": lambda run: (run / RUN).write_text("{"),
        "run.json: damaged: it should be an object": lambda run: (run / RUN).write_text("[]"),
        "run.json: damaged: devices[0]": lambda run: (run / RUN).write_text('{"complete": true, "devices": [{}]}'),
        "cases.csv: the column run_id is missing": lambda run: (run / CASES).write_text(""),
        "cases.csv has no rows": lambda run: (run / CASES).write_text(",".join(schema.COLUMNS) + "\n"),
        "cases.csv, line 2: torn": lambda run: (run / CASES).write_text((run / CASES).read_text()[:-20]),
        "an ok case has the elapsed_ms ''": lambda run: replace(run, ",1.0,", ",,"),
        "could not convert string to float": lambda run: replace(run, ",1.0,", ",fast,"),
        "an ok case has the elapsed_ms 'nan'": lambda run: replace(run, ",1.0,", ",nan,"),
        "utf-8": lambda run: (run / CASES).write_bytes(b"\xff\xfe\x00"),
        "it does not say when it began": lambda run: (run / RUN).write_text('{"started_at_utc": "yesterday"}'),
        "field larger than field limit": lambda run: (run / CASES).write_text(
            ",".join(schema.COLUMNS) + "\n" + '"' + "x" * 200_000
        ),
    }
    folders = {}
    for night, (reason, spoil) in enumerate(faults.items()):
        folder = store(night)
        spoil(folder)
        folders[folder.name] = reason
    incomplete = store(90, complete=False)
    kept = store(91)
    copied = tmp_path / "copies" / kept.name
    shutil.copytree(kept, copied)
    nights, skipped = read(tmp_path)
    assert [night.run_id for night in nights] == [kept.name]
    for name, reason in folders.items():
        assert reason.strip() in skipped[name]
    assert "not finished" in skipped[incomplete.name]
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
    assert by_device == {Device("NVIDIA H200", "GPU-1"): 3, Device("cuda:0", ""): 1}


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
    slower, faster, same, few = history_sections(series, fine=True)
    assert slower.heading == "NVIDIA H200 GPU-3 · 30 runs, 2026-01-01 to 2026-01-30"
    assert slower.cells == [
        ["copyGmem float32 4096x4096 b32x32", "30", "▁" * 11 + "█" * 5, "1.1000", "+10.0 %", "2026-01-26"]
    ]
    assert slower.sentence == "Slower in the newest stretch than in the one before: 1 of 1 cases."
    assert slower.notes == [
        "20260126T020000Z-nightly: 1 slower, copyGmem float32 4096x4096 b32x32 by +10.0 %; no difference in run.json"
    ]
    assert faster.cells[0][4] == "-10.0 %"
    assert (same.cells[0][4], same.notes) == ("", [])
    assert (few.cells[0][4], few.notes) == ("?", ["?: fewer than 6 runs, too few to compare"])
    data = json.loads(json.dumps(history_data(nights, skipped, series)))
    assert data["series"][0]["changes"][0]["ratio"] == pytest.approx(1.1)
    assert data["series"][0]["changes"][0]["kind"] == "step"
    assert len(data["series"][0]["elapsed_ms"]) == len(data["series"][0]["run_ids"]) == 30


def test_a_case_that_failed_in_its_newest_run_is_said(tmp_path: Path, store: Store) -> None:
    nights_of(store, [1.0] * 8)
    store(8, None)
    series = series_of(read(tmp_path)[0])
    (section,) = history_sections(series, fine=True)
    assert section.notes == ["copyGmem float32 4096x4096 b32x32: failed in its newest run"]
    store(9)
    (section,) = history_sections(series_of(read(tmp_path)[0]), fine=True)
    assert section.notes == []


def test_only_the_chosen_cases_are_looked_at(tmp_path: Path, store: Store) -> None:
    store(0)
    nights, _ = read(tmp_path)
    assert [one.case_id for one in series_of(nights, [CASE])] == [CASE]
    assert series_of(nights, ["another"]) == []


def test_a_sparkline_has_the_height_of_its_times() -> None:
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8], fine=True) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8], fine=False) == "_.-=+*%@"
    assert sparkline([1.0] * 100, fine=True) == "▁" * 16
    assert sparkline([1.0, 1.001], fine=True) == "▁▁"  # noise is no mountain
    assert sparkline([1.0] * 1000 + [2.0] * 5, fine=True) == "▁" * 15 + "█"  # the newest shows
    assert all(len(sparkline([1.0] * count, fine=True)) == min(count, 16) for count in range(1, 300))


def test_a_case_is_short_without_what_nearly_every_case_says() -> None:
    assert short(CASE) == "copyGmem float32 4096x4096 b32x32"
    assert short("matmul/tiled/cuda:0/cupy/float32/8x8x8/cold") == "tiled cupy float32 8x8x8 cold"
    assert short("unknown") == "unknown"
