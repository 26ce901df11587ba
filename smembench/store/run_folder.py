"""A run's folder: the journal during the run, then cases.csv, samples.csv and run.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from smembench.model.errors import UsageError
from smembench.model.measurement import Measurement, Trial
from smembench.model.text import json_text
from smembench.store import schema
from smembench.store.csv_files import CASES, SAMPLES, SUSTAINED, table_text
from smembench.store.files import (
    check_folder,
    checksum,
    leftovers,
    make_folder,
    refused,
    sync_folder,
    there,
    write_whole,
)
from smembench.store.journal import Journal
from smembench.store.run import Run
from smembench.store.run_json import RUN as RUN
from smembench.store.run_json import Description, read_json

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
        """Make the folder of a new run; the run's id gets a number if another run began in the same second.

        Raises:
            UsageError: if it cannot be made or written.
        """
        path, number = root / description.run_id, 1
        while not _made(root, path):
            number += 1
            path = root / f"{description.run_id}-{number}"
        description = description.model_copy(update={"run_id": path.name})
        begun = None
        with refused(f"--output {root}: {path} cannot be written"):
            try:
                sync_folder(root)
                begun = Journal.create(path / JOURNAL, description)
                write_whole(path / RUN, to_json(description.data))  # a copy of the journal's first line
            except BaseException:
                with suppress(OSError):
                    if begun is not None:
                        begun.discard()
                    path.rmdir()
                raise
        return cls(path, description, [], begun)

    @classmethod
    def resume(cls, path: Path) -> RunFolder:
        """Open the folder of a run that was interrupted or killed.

        Raises:
            UsageError: if there is nothing to resume, another process writes it, or its journal is damaged.
        """
        if not there(path / JOURNAL):
            if not path.is_dir():
                why = "is a file" if there(path) else "there is no such folder"
                raise UsageError(f"--resume {path}: {why}; name a run's folder")
            if read_description(path).complete:
                raise UsageError(f"--resume {path}: the run is complete; start a new run instead")
            raise UsageError(f"--resume {path}: holds no {JOURNAL}; name the folder of a run that was cut off")
        begun, contents = Journal.reopen(path / JOURNAL)
        try:
            check_folder(path, f"--resume {path}")
            for name in (CASES, SAMPLES, SUSTAINED, RUN):
                for temporary in leftovers(path / name):
                    temporary.unlink(missing_ok=True)
        except BaseException:
            begun.close()
            raise
        return cls(path, contents.description, contents.trials, begun)

    def go_on(self, differences: Sequence[str]) -> None:
        """Store that the run is resumed although this differs.

        Raises:
            OSError: if the disk is full or the folder was removed.
        """
        self._journal.forced(differences)
        known = [*self.description.resumed_with_differences, list(differences)]
        self.description = self.description.model_copy(update={"resumed_with_differences": known})

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
        return self.write(Run.of(self.description, measurements, self.path, complete=complete))

    def write(self, run: Run) -> Run:
        """The same for a run whose rows and samples are known."""
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        description = self.description.model_copy(update={"complete": run.complete, "ended_at_utc": ended})
        samples = schema.sample_fields(description.run_id, run.samples)
        tables = {
            CASES: table_text(schema.COLUMNS, map(schema.to_fields, run.rows)).encode("utf-8", "backslashreplace"),
            SAMPLES: table_text(schema.SAMPLE_COLUMNS, samples).encode(),
        }
        if run.moments:
            moments = schema.moment_fields(description.run_id, run.moments)
            tables[SUSTAINED] = table_text(schema.MOMENT_COLUMNS, moments).encode()
        for name, content in tables.items():
            write_whole(self.path / name, content)
        checksums = {name: checksum(content) for name, content in tables.items()}
        run = replace(run, path=self.path, description=description.model_copy(update={"checksums": checksums}))
        write_whole(self.path / RUN, to_json(run.description.data))
        if run.complete:
            self._journal.discard()
        else:
            self._journal.close()
        sync_folder(self.path)
        return run

    @property
    def there(self) -> bool:
        """True if the journal is still in place: somebody may remove or rename the folder."""
        return there(self.path / JOURNAL)

    def close(self) -> None:
        """Let other processes resume the run, if it is not finished."""
        self._journal.close()


@contextmanager
def made(root: Path) -> Iterator[None]:
    """Make the folder that is to hold runs, if it is missing; what was made and is empty at the end is removed.

    Raises:
        UsageError: if it cannot be made or written.
    """
    what = f"--output {root}"
    missing = [path for path in (root, *root.parents) if not there(path)]
    make_folder(root, what)
    try:
        check_folder(root, what)
        yield
    finally:
        for path in missing:
            with suppress(OSError):
                path.rmdir()


def _made(root: Path, path: Path) -> bool:
    """Make a folder of a run; False if it is there.

    Raises:
        UsageError: if it cannot be made.
    """
    with refused(f"--output {root}: {path} cannot be made"):
        root.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            path.mkdir()
            return True
    return False


def resume_command(path: Path) -> str:
    """The command, for a shell, that continues a run that was cut off."""
    return f"smembench run --resume {quote(str(path))}"


def to_json(data: object) -> str:
    """Indented JSON with a final newline."""
    return json_text(data, indent=2) + "\n"


def read_description(folder: Path) -> Description:
    """Read run.json; an empty description if there is none.

    Raises:
        UsageError: if it exists and does not describe a run, with the field.
    """
    way_out = "mend it, or move it away to read the cases without it"
    return read_json(folder / RUN, Description, way_out) or Description()
