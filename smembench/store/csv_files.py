"""Reading and writing cases.csv and samples.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from reprlib import repr as shortened
from warnings import warn

from pydantic import TypeAdapter, ValidationError

from smembench.model.errors import Dropped, UsageError
from smembench.model.ranges import Count, Milliseconds
from smembench.model.text import number_of
from smembench.store import schema
from smembench.store.files import checksum as checksum_of
from smembench.store.files import read_whole
from smembench.store.schema import Row

Samples = Mapping[int, Sequence[float]]
"""Elapsed times of one case in ms, by round."""


_READ = ("case_id", "round", "elapsed_ms", "schema_version")
"""The columns of samples.csv that are read; cases.csv has what else is in it."""
_SAMPLES = TypeAdapter(tuple[list[str], list[Count], list[Milliseconds], list[int]])


def table_text(columns: Sequence[str], records: Iterable[Iterable[object]]) -> str:
    """A header and records as CSV with LF line endings; values as ``schema.to_text`` writes them."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(schema.to_text, record) for record in records)
    return stream.getvalue()


def read_rows(path: Path, checksum: str = "") -> list[Row]:
    """Rows of a cases.csv; ``checksum`` as for ``check_edited``.

    Raises:
        UsageError: if the file does not exist or does not have this schema, with the line.
    """
    reader = csv.reader(text := text_of(path))
    try:
        header = next(reader, [])
        if missing := [column for column in schema.REQUIRED if column not in header]:
            raise UsageError(f"{path}: not a cases.csv: the column {missing[0]} is missing")
        rows = []
        for record in filter(None, reader):
            if len(record) != len(header):
                raise ValueError(uneven(record, header))
            rows.append(schema.from_fields(dict(zip(header, record, strict=True))))
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{path}, line {reader.line_num}: {error}") from None
    check_edited(path, text, checksum)
    return rows


def read_samples(path: Path, checksum: str = "") -> dict[str, Samples]:
    """Elapsed times of a samples.csv in ms, by case id and round; ``checksum`` as for ``check_edited``.

    Raises:
        UsageError: if the file does not exist or does not have this schema, with the line.
    """
    reader = csv.reader(text := text_of(path))
    try:
        cases, rounds, times = _samples_from(next(reader, []), (record for record in reader if record))
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.line_num}: {error}") from None
    except ValueError as error:
        raise UsageError(f"{path}: not a samples.csv: {error}") from None
    check_edited(path, text, checksum)
    samples: dict[str, dict[int, list[float]]] = {}
    for case, number, elapsed in zip(cases, rounds, times, strict=True):
        samples.setdefault(case, {}).setdefault(number, []).append(elapsed)
    return dict(samples)


def _samples_from(header: Sequence[str], records: Iterable[list[str]]) -> tuple[list[str], list[int], list[float]]:
    """Case ids, rounds and elapsed times of a samples.csv's records, whole columns at once, which is quicker.

    No record outlives its turn: thousands of lists would set off Python's garbage collector again and again, which took
    half of the time to read 365 runs.

    Raises:
        ValueError: for a column that is missing and a field that is not what it should be, with the line.
    """
    absent = [name for name in _READ if name not in header]
    more = [schema.SCHEMA_VERSION if name == "schema_version" else None for name in absent]
    wanted = itemgetter(*map([*header, *absent].index, _READ))
    found: list[str | int | None] = []
    for line, record in enumerate(records, 2):
        if len(record) != len(header):
            raise ValueError(f"line {line}: {uneven(record, header)}")
        found += wanted([*record, *more] if more else record)
    try:
        cases, rounds, times, versions = _SAMPLES.validate_python(
            tuple(found[place :: len(_READ)] for place in range(len(_READ)))
        )
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=lambda one: int(one["loc"][1]))
        column, row = map(int, first["loc"])
        raise ValueError(f"line {row + 2}: the column {_READ[column]} holds {shortened(first['input'])}") from None
    if other := set(versions) - {schema.SCHEMA_VERSION}:
        raise ValueError(f"schema version {other.pop()}; this smembench reads {schema.SCHEMA_VERSION}")
    return cases, rounds, times


def uneven(record: Sequence[str], header: Sequence[str]) -> str:
    """What is wrong with a record that was cut off or joined with another."""
    return f"it has {number_of(len(record), 'field')}, and the first line {len(header)}"


def text_of(path: Path) -> io.StringIO:
    """The text of a CSV file.

    Raises:
        UsageError: if it cannot be read.
    """
    try:
        return io.StringIO(read_whole(path).decode("utf-8-sig"), newline="")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: cannot be read ({error})") from None


def check_edited(path: Path, text: io.StringIO, checksum: str) -> None:
    """Warn (``Dropped``) of a file that could be read and is not as the run wrote it, if it has a checksum."""
    if checksum and checksum != checksum_of(text.getvalue().encode()):
        warn(f"{path}: was edited after the run; its figures are used as they stand", Dropped, stacklevel=3)
