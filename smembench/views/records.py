"""Output for programs: CSV, and the JSON of ``--json``, from the records of a table.

A record is a line of a table by the names of its columns. JSON is one object with a list of records for each table,
beside what holds for all of them. Cases and figures have the names that they have in cases.csv.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from smembench.store.csv_files import table_text

Record = Mapping[str, object]


def values(of: object, names: Iterable[str]) -> dict[str, object]:
    """These attributes, by their names."""
    return {name: getattr(of, name) for name in names}


def csv(records: Sequence[Record]) -> str:
    """Records under the names of the first; None is empty, and so is the text without records."""
    if not records:
        return ""
    return table_text(list(records[0]), (record.values() for record in records))
