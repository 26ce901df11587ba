"""A run's folder: the journal while it runs, then cases.csv, samples.csv and run.json."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from smembench.errors import UsageError
from smembench.measurement import Measurement
from smembench.relations import relate
from smembench.store import schema
from smembench.store.csv_files import check_folder, write_rows, write_table, write_whole
from smembench.store.journal import Journal
from smembench.store.schema import Row

CASES = "cases.csv"
SAMPLES = "samples.csv"
RUN = "run.json"
JOURNAL = "journal.jsonl"


def new_run_id(name: str, now: datetime | None = None) -> str:
    """``<UTC time>-<config>``, which sorts by time."""
    return f"{now or datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}"


def rows_of(run_id: str, measurements: Sequence[Measurement]) -> list[Row]:
    """Rows of a run, relations between its cases included."""
    relations = relate(measurements)
    return [schema.row_of(run_id, measurement, relations) for measurement in measurements]


class RunFolder:
    """``<root>/<run id>/``, made when the run starts.

    Raises:
        UsageError: when the folder cannot be made or written.
    """

    def __init__(self, root: Path, run_id: str, run: Mapping[str, Any]) -> None:
        self.path = root / run_id
        self._run_id = run_id
        self._run = dict(run)
        self._done: list[Measurement] = []
        try:
            self.path.mkdir(parents=True)
        except FileExistsError:
            raise UsageError(f"{self.path}: is there already; wait a second or give another --output") from None
        except OSError as error:
            raise UsageError(f"--output {root}: {self.path} cannot be made ({error.strerror})") from None
        check_folder(self.path, f"--output {root}")
        self._journal = Journal(self.path / JOURNAL)

    def append(self, measurement: Measurement) -> None:
        """Keep a finished case."""
        self._journal.append(measurement)
        self._done.append(measurement)

    def finish(self, *, complete: bool) -> list[Row]:
        """Write the run's files, each under its name only when whole, and drop the journal."""
        rows = rows_of(self._run_id, self._done)
        cases, samples = io.StringIO(), io.StringIO()
        write_rows(cases, rows)
        write_table(samples, schema.SAMPLE_COLUMNS, schema.sample_fields(self._run_id, self._done))
        run = {
            **self._run,
            "complete": complete,
            "ended_at_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_whole(self.path / CASES, cases.getvalue())
        write_whole(self.path / SAMPLES, samples.getvalue())
        write_whole(self.path / RUN, json.dumps(run, indent=2, ensure_ascii=False) + "\n")
        self._journal.discard()
        return rows


def read_run(folder: Path) -> dict[str, Any]:
    """A run's run.json, or nothing when it has none.

    Raises:
        UsageError: when it is there and not JSON.
    """
    try:
        data: dict[str, Any] = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{folder / RUN}: cannot be read ({error})") from None
    return data
