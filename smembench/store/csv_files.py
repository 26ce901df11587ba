"""Reading and writing cases.csv and samples.csv."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from smembench.model.errors import UsageError
from smembench.store import schema
from smembench.store.schema import Row

Samples = Mapping[int, Sequence[float]]
"""Elapsed times of one case in ms, by round."""


def table_text(columns: Sequence[str], records: Iterable[Sequence[str]]) -> str:
    """A header and records as CSV with LF line endings."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(records)
    return stream.getvalue()


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: to a temporary file beside it, fsync, rename."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes files that only their owner can read; results get the usual permissions.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path, *, force: bool, what: str = "--csv") -> None:
    """Check now that a file can be written later; ``what`` is the option that names it.

    Raises:
        UsageError: if the file exists and ``force`` is False, or its folder is missing or not writable.
    """
    if path.is_dir():
        raise UsageError(f"{what} {path}: is a folder; name a file in it")
    if path.exists() and not force:
        raise UsageError(f"{what} {path}: is there already and is kept; choose another name or add --force")
    check_folder(path.parent, f"{what} {path}")


def check_folder(folder: Path, what: str) -> None:
    """Check that a folder exists and is writable, by making a file in it.

    Raises:
        UsageError: if it is not, with the system's reason.
    """
    if not folder.is_dir():
        raise UsageError(f"{what}: there is no folder {folder}; make it first")
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(f"{what}: {folder} cannot be written ({error.strerror})") from None


def read_rows(path: Path) -> list[Row]:
    """Rows of a cases.csv.

    Raises:
        UsageError: if the file does not exist or does not have this schema, with the line.
    """
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            if missing := [column for column in schema.REQUIRED if column not in (reader.fieldnames or ())]:
                raise UsageError(f"{path}: not a cases.csv: the column {missing[0]} is missing")
            rows = []
            for record in reader:
                try:
                    rows.append(schema.from_fields(record))
                except ValueError as error:
                    raise UsageError(f"{path}, line {reader.line_num}: {error}") from None
            return rows
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None


def read_samples(path: Path) -> dict[str, Samples]:
    """Elapsed times of a samples.csv in ms, by case id and round.

    Raises:
        UsageError: if the file does not exist or lacks these columns.
    """
    samples: dict[str, dict[int, list[float]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            for record in csv.DictReader(stream):
                by_round = samples.setdefault(record["case_id"], {})
                by_round.setdefault(int(record["round"]), []).append(float(record["elapsed_ms"]))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise UsageError(f"{path}: not a samples.csv ({type(error).__name__}: {error})") from None
    return dict(samples)
