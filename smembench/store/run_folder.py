"""A run's folder: the journal during the run, then cases.csv, samples.csv and run.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from smembench.model.errors import UsageError
from smembench.model.measurement import Measurement, Trial
from smembench.store import journal, schema
from smembench.store.csv_files import table_text
from smembench.store.files import check_folder, read_whole, write_whole
from smembench.store.journal import Journal
from smembench.store.run import Run
from smembench.store.run_json import Description, fault

CASES = "cases.csv"
SAMPLES = "samples.csv"
RUN = "run.json"
JOURNAL = "journal.jsonl"


def new_run_id(name: str, now: datetime | None = None) -> str:
    """``<UTC time>-<name>``, which sorts by time."""
    return f"{now or datetime.now(UTC):%Y%m%dT%H%M%SZ}-{name}"


class RunFolder:
    """The folder ``<root>/<run id>/`` of a run in progress, new or resumed."""

    def __init__(self, path: Path, description: Description, trials: list[Trial], open_journal: Journal) -> None:
        self.path = path
        self.description = description
        self.trials = trials
        self._journal = open_journal

    @classmethod
    def create(cls, root: Path, description: Description) -> RunFolder:
        """Make the folder of a new run.

        Raises:
            UsageError: if it exists, or cannot be made or written.
        """
        path = root / description.run_id
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            raise UsageError(f"{path}: is there already; wait a second or give another --output") from None
        except OSError as error:
            raise UsageError(f"--output {root}: {path} cannot be made ({error.strerror})") from None
        check_folder(path, f"--output {root}")
        return cls(path, description, [], Journal.create(path / JOURNAL, description))

    @classmethod
    def resume(cls, path: Path) -> RunFolder:
        """Open the folder of a run that was interrupted or killed.

        Raises:
            UsageError: if there is nothing to resume, or its journal is damaged.
        """
        if not (path / JOURNAL).exists():
            done = read_description(path).complete
            reason = "the run is complete" if done else f"there is no {JOURNAL} in it"
            raise UsageError(f"--resume {path}: {reason}; start a new run instead")
        check_folder(path, f"--resume {path}")
        contents = journal.read(path / JOURNAL)
        return cls(path, contents.description, contents.trials, Journal.reopen(path / JOURNAL, contents))

    def append(self, trial: Trial) -> None:
        """Store a trial in the journal.

        Raises:
            OSError: if the disk is full or the folder was removed.
        """
        self._journal.append(trial)
        self.trials.append(trial)

    def finish(self, measurements: Sequence[Measurement], *, complete: bool) -> Run:
        """Write the run's files, each atomically, and remove the journal of a complete run.

        Raises:
            OSError: if the disk is full or the folder was removed.
        """
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        description = self.description.model_copy(update={"complete": complete, "ended_at_utc": ended})
        run = Run.of(description, measurements, self.path, complete=complete)
        samples = schema.sample_fields(description.run_id, measurements)
        write_whole(self.path / CASES, table_text(schema.COLUMNS, map(schema.to_fields, run.rows)))
        write_whole(self.path / SAMPLES, table_text(schema.SAMPLE_COLUMNS, samples))
        write_whole(self.path / RUN, to_json(description.data))
        if complete:
            self._journal.discard()
        else:
            self._journal.close()
        return run


def to_json(data: object) -> str:
    """Indented JSON with a final newline."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def read_description(folder: Path) -> Description:
    """Read run.json; an empty description if there is none.

    Raises:
        UsageError: if it exists and does not describe a run, with the field.
    """
    path = folder / RUN
    try:
        return Description.model_validate_json(read_whole(path))
    except FileNotFoundError:
        return Description()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise UsageError(
            f"{path}: damaged: {fault(error)}; mend it, or move it away to read the cases without it"
        ) from None
