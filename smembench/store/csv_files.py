"""Reading and writing cases.csv and samples.csv."""

from __future__ import annotations

import csv
import io
from codecs import BOM_UTF8
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from reprlib import repr as shortened

from pydantic import TypeAdapter, ValidationError

from smembench.model.errors import UsageError
from smembench.model.ranges import Count, Milliseconds
from smembench.model.sustained import Moment
from smembench.model.text import number_of
from smembench.store import schema
from smembench.store.files import checksum as checksum_of
from smembench.store.files import read_whole, refused
from smembench.store.schema import Row

CASES, SAMPLES, SUSTAINED = "cases.csv", "samples.csv", "sustained.csv"

Samples = Mapping[int, Sequence[float]]
"""Elapsed times of one case in ms, by round."""


_READ = ("case_id", "round", "elapsed_ms", "schema_version")
"""The columns of samples.csv that are read; cases.csv has what else is in it."""
_MOMENT = TypeAdapter(Moment)
_SAMPLES = TypeAdapter(tuple[list[str], list[Count], list[Milliseconds], list[int]])


def table_text(columns: Sequence[str], records: Iterable[Iterable[object]]) -> str:
    """A header and records as CSV with LF line endings; values as ``schema.to_text`` writes them."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(schema.to_text, record) for record in records)
    return stream.getvalue()


def read_columns(
    path: Path, columns: Sequence[str], required: Collection[str], *, kind: str
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Read some columns of a CSV file: of every record its line and fields, "" for a column that the file lacks.

    No record outlives its turn: thousands of lists would set off Python's garbage collector again and again, which took
    half of the time to read 365 runs.

    Args:
        kind: the file's usual name, for the message about a file that is another.

    Raises:
        UsageError: for a file that cannot be read, a ``required`` column that is missing, one there twice, and a
            record that was cut off or joined with another, with the line.
    """
    with refused(f"{path}: cannot be read"):
        text = io.StringIO(read_whole(path).decode("utf-8-sig"), newline="")
    reader = csv.reader(text)
    try:
        header = next(reader, [])
        if missing := [column for column in columns if column in required and column not in header]:
            other = "" if path.name == kind else f"not a {kind}: "
            what = f"the column {missing[0]} is missing" if header else "it is empty"
            if len(header) == 1 and set(header[0]) & {";", "\t"}:  # as spreadsheets save it, often with decimal commas
                what += "; save it with commas between its fields and points in its numbers"
            raise UsageError(f"{path}: {other}{what}")
        if twice := [column for column in columns if header.count(column) > 1]:
            raise UsageError(f"{path}: the column {twice[0]} is there twice; remove the one that is wrong")
        absent = [column for column in columns if column not in header]
        wanted = itemgetter(*map([*header, *absent].index, columns))
        blank = [""] * len(absent)
        for record in filter(None, reader):
            if len(record) != len(header):
                uneven = f"damaged: it has {number_of(len(record), 'field')}, and the first line {len(header)}"
                raise UsageError(f"{path}, line {reader.line_num}: {uneven}")
            yield reader.line_num, wanted(record + blank if blank else record)
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.line_num}: {error}") from None


def edited(path: Path, checksum: str) -> bool:
    """True if a file is not the one with this checksum, which the run wrote; "" if that is not known.

    Raises:
        UsageError: for a file that cannot be read.
    """
    with refused(f"{path}: cannot be read"):
        return bool(checksum) and checksum != checksum_of(read_whole(path).removeprefix(BOM_UTF8))


def read_rows(path: Path) -> list[Row]:
    """Rows of a cases.csv.

    Raises:
        UsageError: if the file does not exist, does not have this schema or has a case twice, with the line.
    """
    rows: dict[str, Row] = {}
    names = schema.COLUMNS
    for line, record in read_columns(path, names, schema.REQUIRED, kind=CASES):
        try:
            row = schema.from_fields(dict(zip(names, record, strict=True)))
        except ValueError as error:
            raise UsageError(f"{path}, line {line}: {error}") from None
        if row.case_id in rows:
            raise UsageError(f"{path}, line {line}: {row.case_id} is there twice; give each run a file of its own")
        rows[row.case_id] = row
    return list(rows.values())


def read_moments(path: Path) -> dict[str, list[Moment]]:
    """The batches of a sustained.csv by case id.

    Raises:
        UsageError: if the file does not have this schema, with the line.
    """
    moments: dict[str, list[Moment]] = {}
    names = schema.MOMENT_COLUMNS[2:]
    for line, (case, *texts) in read_columns(path, names, names, kind=SUSTAINED):
        try:
            values = {name: text for name, text in zip(names[1:], texts, strict=True) if text}
            moments.setdefault(case, []).append(_MOMENT.validate_python(values))
        except ValidationError as error:
            raise UsageError(f"{path}, line {line}: {schema.misfit(error)}") from None
    return moments


def read_samples(path: Path) -> dict[str, Samples]:
    """Elapsed times of a samples.csv in ms, by case id and round.

    Raises:
        UsageError: if the file does not exist or does not have this schema, with the line.
    """
    fields: list[str] = []
    for _, record in read_columns(path, _READ, _READ[:-1], kind=SAMPLES):
        fields += record
    columns = [fields[place :: len(_READ)] for place in range(len(_READ))]
    columns[-1] = [version or str(schema.SCHEMA_VERSION) for version in columns[-1]]
    try:
        cases, rounds, times, versions = _SAMPLES.validate_python(tuple(columns))  # whole columns at once: quicker
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=lambda one: int(one["loc"][1]))
        column, row = map(int, first["loc"])
        what = f"the column {_READ[column]} holds {shortened(first['input'])}"
        raise UsageError(f"{path}, line {row + 2}: {what}") from None
    if other := set(versions) - {schema.SCHEMA_VERSION}:
        raise UsageError(f"{path}: schema version {other.pop()}; this smembench reads {schema.SCHEMA_VERSION}")
    samples: dict[str, dict[int, list[float]]] = {}
    for case, number, elapsed in zip(cases, rounds, times, strict=True):
        samples.setdefault(case, {}).setdefault(number, []).append(elapsed)
    return dict(samples)
