"""A run's folder: the journal while it runs, then cases.csv, samples.csv and run.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from smembench.model.errors import UsageError
from smembench.model.measurement import Measurement, Trial
from smembench.store import journal, schema
from smembench.store.csv_files import check_folder, table_text, write_whole
from smembench.store.journal import Journal
from smembench.store.relations import relate
from smembench.store.run_json import fault
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
    """``<root>/<run id>/``; made by ``create``, or taken up again by ``resume``."""

    def __init__(self, path: Path, run: Mapping[str, Any], trials: list[Trial], open_journal: Journal) -> None:
        self.path = path
        self.run = dict(run)
        self.trials = trials
        self._journal = open_journal

    @classmethod
    def create(cls, root: Path, run: Mapping[str, Any]) -> RunFolder:
        """Make the folder when the run starts.

        Raises:
            UsageError: when it cannot be made or written.
        """
        path = root / run["run_id"]
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise UsageError(f"{path}: is there already; wait a second or give another --output") from None
        except OSError as error:
            raise UsageError(f"--output {root}: {path} cannot be made ({error.strerror})") from None
        check_folder(path, f"--output {root}")
        return cls(path, run, [], Journal.create(path / JOURNAL, run))

    @classmethod
    def resume(cls, path: Path) -> RunFolder:
        """Take up a run that was interrupted or killed.

        Raises:
            UsageError: when there is nothing to resume, or its journal is damaged.
        """
        if not (path / JOURNAL).exists():
            done = read_run(path).get("complete")
            reason = "the run is complete" if done else f"there is no {JOURNAL} in it"
            raise UsageError(f"--resume {path}: {reason}; start a new run instead")
        check_folder(path, f"--resume {path}")
        contents = journal.read(path / JOURNAL)
        return cls(path, contents.run, contents.trials, Journal.reopen(path / JOURNAL, contents))

    def append(self, trial: Trial) -> None:
        """Keep a trial.

        Raises:
            OSError: when the disk is full or the folder is gone.
        """
        self._journal.append(trial)
        self.trials.append(trial)

    def finish(self, measurements: Sequence[Measurement], *, complete: bool) -> list[Row]:
        """Write the run's files, each under its name only when whole; a complete run needs its journal no more.

        Raises:
            OSError: when the disk is full or the folder is gone.
        """
        run_id = self.run["run_id"]
        rows = rows_of(run_id, measurements)
        samples = schema.sample_fields(run_id, measurements)
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        write_whole(self.path / CASES, table_text(schema.COLUMNS, map(schema.to_fields, rows)))
        write_whole(self.path / SAMPLES, table_text(schema.SAMPLE_COLUMNS, samples))
        write_whole(self.path / RUN, to_json({**self.run, "complete": complete, "ended_at_utc": ended}))
        if complete:
            self._journal.discard()
        else:
            self._journal.close()
        return rows


def to_json(data: Mapping[str, Any]) -> str:
    """Indented JSON with a newline at its end."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def read_run(folder: Path) -> dict[str, Any]:
    """A run's run.json, or nothing when it has none.

    Raises:
        UsageError: when it is there and does not describe a run.
    """
    path = folder / RUN
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
    if wrong := fault(data):
        raise UsageError(f"{path}: damaged: {wrong}; mend it, or move it away to read the cases without it")
    return data
