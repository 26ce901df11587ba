"""A run, just measured or read from its files: what studies, tables and reports take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from smembench.model.measurement import Measurement, Status, moment
from smembench.model.sustained import Moment
from smembench.store.csv_files import Samples
from smembench.store.relations import relate
from smembench.store.run_json import Description
from smembench.store.schema import Row, row_of


@dataclass(frozen=True, slots=True)
class Run:
    """The cases of a run, or some of them, with its description and samples.

    Attributes:
        description: run.json; empty if there is none, as beside a lone cases.csv.
        samples: ms per launch by case id and round; empty if they were not kept.
        moments: the batches of loads of seconds, by case id.
        path: the folder or file that it was read from, if any.
        complete: False for a run that was cut off.
    """

    rows: Sequence[Row]
    description: Description = field(default_factory=Description)
    samples: Mapping[str, Samples] = field(default_factory=dict)
    path: Path | None = None
    complete: bool = True
    moments: Mapping[str, Sequence[Moment]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        description: Description,
        measurements: Sequence[Measurement],
        path: Path | None = None,
        *,
        complete: bool = True,
    ) -> Run:
        """A run of measurements, with the relations between its cases."""
        relations = relate(measurements)
        samples = {measurement.case.id: measurement.by_round for measurement in measurements if measurement.samples}
        rows = [row_of(description.run_id, measurement, relations) for measurement in measurements]
        moments = {measurement.case.id: measurement.moments for measurement in measurements if measurement.moments}
        return cls(rows, description, samples, path, complete, moments)

    @property
    def id(self) -> str:
        """The run's id, which begins with its UTC time; the file's name if neither a row nor run.json has an id."""
        named = next((row.run_id for row in self.rows if row.run_id), self.description.run_id)
        return named or (self.path.name if self.path else "")

    @property
    def began(self) -> datetime:
        """Start of the run; the earliest possible time if neither run.json nor a row records it."""
        text = self.description.started_at_utc or min((row.started_at_utc for row in self.rows), default="")
        try:
            return moment(text)
        except ValueError:
            return datetime.min.replace(tzinfo=UTC)

    @property
    def failed(self) -> list[Row]:
        """The cases that make the process exit with 1: they are neither ok nor skipped."""
        return [row for row in self.rows if row.status not in (Status.OK, Status.SKIPPED)]

    def values(self, case_id: str) -> list[float]:
        """Samples of a case from all rounds, in order."""
        return [value for values in self.samples.get(case_id, {}).values() for value in values]

    def only(self, rows: Sequence[Row]) -> Run:
        """The same run with some of its rows."""
        return replace(self, rows=rows)
