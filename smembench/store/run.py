"""A run as studies, tables and reports take it, whether it was just measured or is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from smembench.model.measurement import Measurement, Status
from smembench.store.csv_files import Samples
from smembench.store.relations import relate
from smembench.store.run_json import Description
from smembench.store.schema import Row, row_of


@dataclass(frozen=True, slots=True)
class Run:
    """The cases of a run, or some of them, with its description and samples.

    ``description`` is empty where there is no run.json, as beside a bare cases.csv. ``samples`` are ms per launch by
    case id and round; empty where none were kept. ``path`` is the folder or file it was read from, if any.
    ``complete`` is False for a run that was cut off.
    """

    rows: Sequence[Row]
    description: Description = field(default_factory=Description)
    samples: Mapping[str, Samples] = field(default_factory=dict)
    path: Path | None = None
    complete: bool = True

    @classmethod
    def of(
        cls,
        description: Description,
        measurements: Sequence[Measurement],
        path: Path | None = None,
        *,
        complete: bool = True,
    ) -> Run:
        """The run of these measurements, the relations between its cases included."""
        relations = relate(measurements)
        samples: dict[str, dict[int, list[float]]] = {}
        for measurement in measurements:
            for sample in measurement.samples:
                rounds = samples.setdefault(measurement.case.id, {})
                rounds.setdefault(sample.round, []).append(sample.elapsed_ms)
        rows = [row_of(description.run_id, measurement, relations) for measurement in measurements]
        return cls(rows, description, dict(samples), path, complete)

    @property
    def id(self) -> str:
        """The run's id, which begins with its UTC time; its file's name where neither a row nor run.json has one."""
        named = next((row.run_id for row in self.rows if row.run_id), self.description.run_id)
        return named or (self.path.name if self.path else "")

    @property
    def failed(self) -> list[Row]:
        """The cases that should make the process exit with 1: neither ok nor skipped on purpose."""
        return [row for row in self.rows if row.status not in (Status.OK, Status.SKIPPED)]

    def values(self, case_id: str) -> list[float]:
        """Samples of a case over all its rounds, in order."""
        return [value for values in self.samples.get(case_id, {}).values() for value in values]

    def only(self, rows: Sequence[Row]) -> Run:
        """The same run with these of its rows."""
        return replace(self, rows=rows)
