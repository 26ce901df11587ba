"""Reading and writing cases.csv and samples.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from smembench.model.errors import UsageError
from smembench.store import schema
from smembench.store.files import read_whole
from smembench.store.schema import Row

Samples = Mapping[int, Sequence[float]]
"""Elapsed times of one case in ms, by round."""


def table_text(columns: Sequence[str], records: Iterable[Iterable[object]]) -> str:
    """A header and records as CSV with LF line endings; values as ``schema.to_text`` writes them."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(schema.to_text, record) for record in records)
    return stream.getvalue()


def read_rows(path: Path) -> list[Row]:
    """Rows of a cases.csv.

    Raises:
        UsageError: if the file does not exist or does not have this schema, with the line.
    """
    reader = csv.DictReader(_text(path))
    try:
        if missing := [column for column in schema.REQUIRED if column not in (reader.fieldnames or ())]:
            raise UsageError(f"{path}: not a cases.csv: the column {missing[0]} is missing")
        return [schema.from_fields(record) for record in reader]
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{path}, line {reader.line_num}: {error}") from None


def read_samples(path: Path) -> dict[str, Samples]:
    """Elapsed times of a samples.csv in ms, by case id and round.

    Raises:
        UsageError: if the file does not exist or does not have this schema, with the line.
    """
    reader = csv.reader(_text(path))
    try:
        cases, rounds, times = schema.samples_from(next(reader, []), [record for record in reader if record])
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.line_num}: {error}") from None
    except ValueError as error:
        raise UsageError(f"{path}: not a samples.csv: {error}") from None
    samples: dict[str, dict[int, list[float]]] = {}
    for case, number, elapsed in zip(cases, rounds, times, strict=True):
        samples.setdefault(case, {}).setdefault(number, []).append(elapsed)
    return dict(samples)


def _text(path: Path) -> io.StringIO:
    try:
        return io.StringIO(read_whole(path).decode(), newline="")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None
