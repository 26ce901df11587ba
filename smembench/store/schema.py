"""Schema 1 of cases.csv and samples.csv: the columns, and rows from measurements and from text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import BeforeValidator, TypeAdapter, ValidationError, with_config

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case, parameters_of
from smembench.model.measurement import Conditions, Measurement
from smembench.store.relations import Relations

SCHEMA_VERSION = 1
SAMPLE_COLUMNS = ("schema_version", "run_id", "case_id", "round", "sample", "elapsed_ms")


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text == "true"


Flag = Annotated[bool, BeforeValidator(_flag)]
"""A bool, ``true`` or ``false`` in a CSV field."""


@with_config(allow_inf_nan=False)
@dataclass(frozen=True, slots=True)
class Row:
    """One row of cases.csv. The fields are its columns, in order; None, an empty field, means not applicable.

    A column with the name of a field of Case, Measurement, Conditions, Resources or Relations is that field, one named
    ``predicted_…`` is a field of Prediction.

    Attributes:
        shared_bytes: one block's tile; on the CPU one thread's tile buffer.
        max_error: transpose: the fraction of elements that differ; matmul: ‖out − ref‖/‖ref‖.
        elapsed_ms: median time per launch.
        bytes, flops: the problem's counts per launch.
        effective_gb_s, gflop_s: these counts divided by the median time, in 10^9 per second.
        percent_of_copy: of memcpy: cudaMemcpy from device to device, on the CPU NumPy's copy.
        percent_of_copygmem: of copyGmem with the same block.
        percent_of_peak: of memory clock × 2 × bus width, of the arithmetic peak, or of 128 bytes of shared memory per
            clock and multiprocessor, whichever bounds the problem.
        precision: ``Measurement.ci_width``.
    """

    schema_version: int
    run_id: str
    case_id: str
    problem: str
    kernel: str
    device: str
    compiler: str
    dtype: str
    m: int
    n: int
    k: int | None
    block_x: int | None
    block_y: int | None
    pad: int | None
    shared_bytes: int | None
    cache: str
    status: str
    reason: str | None
    verified: Flag
    max_error: float | None
    samples: int
    elapsed_ms: float | None
    elapsed_ms_min: float | None
    elapsed_ms_q1: float | None
    elapsed_ms_q3: float | None
    elapsed_ms_max: float | None
    bytes: int
    effective_gb_s: float | None
    flops: int | None
    gflop_s: float | None
    percent_of_copy: float | None
    percent_of_peak: float | None
    speedup_vs_cpu: float | None
    speedup_vs_naive: float | None
    sm_clock_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    throttle_reasons: str | None
    started_at_utc: str
    percent_of_copygmem: float | None
    rounds: int | None
    samples_discarded: int | None
    precision: float | None
    converged: Flag | None
    within_cache: Flag | None
    memory_clock_mhz: int | None
    other_processes: int | None
    cpu_mhz: float | None
    cpu_governor: str | None
    cpu_load: float | None
    cpu_waiting: float | None
    predicted_load_conflict: float | None
    predicted_store_conflict: float | None
    predicted_load_sectors: float | None
    predicted_store_sectors: float | None
    predicted_occupancy: float | None
    stride: int | None
    predicted_constant_addresses: float | None
    bytes_per_clock: float | None
    registers: int | None
    local_bytes: int | None

    @property
    def ok(self) -> bool:
        """Whether the row carries figures."""
        return self.status == "ok"

    @property
    def disturbed(self) -> bool:
        """Whether the GPU throttled or other processes used the cores during its samples."""
        return Conditions(throttle_reasons=self.throttle_reasons, cpu_waiting=self.cpu_waiting).disturbed

    @property
    def block(self) -> Block | None:
        """Block dimensions; None for a kernel without blocks."""
        return None if self.block_x is None or self.block_y is None else Block(self.block_x, self.block_y)

    @property
    def parameters(self) -> tuple[tuple[str, int], ...]:
        """The problem's own parameters, from the case's id."""
        return parameters_of(self.case_id)

    @property
    def case(self) -> Case:
        """The case of this row."""
        return Case(**{field.name: getattr(self, field.name) for field in fields(Case)})


COLUMNS = tuple(field.name for field in fields(Row))
REQUIRED = COLUMNS[: COLUMNS.index("started_at_utc") + 1]
"""The columns of every schema-1 file; later columns are additions."""
_OPTIONAL = frozenset(name for name, hint in get_type_hints(Row).items() if NoneType in get_args(hint))
_POSITIVE = ("elapsed_ms", "elapsed_ms_min", "elapsed_ms_q1", "elapsed_ms_q3", "elapsed_ms_max", "bytes")
"""Columns that are positive in every successful case."""
_ROW = TypeAdapter(Row)


def row_of(run_id: str, measurement: Measurement, relations: Mapping[Case, Relations]) -> Row:
    """The row of a measurement."""
    case, summary = measurement.case, measurement.summary
    named: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "case_id": case.id,
        "block_x": case.block.x if case.block else None,
        "block_y": case.block.y if case.block else None,
        "shared_bytes": measurement.shared_bytes or None,
        "status": measurement.status.value,
        "reason": measurement.reason or None,
        "samples": len(measurement.samples),
        "elapsed_ms": summary.median if summary else None,
        "elapsed_ms_min": summary.min if summary else None,
        "elapsed_ms_q1": summary.q1 if summary else None,
        "elapsed_ms_q3": summary.q3 if summary else None,
        "elapsed_ms_max": summary.max if summary else None,
        "bytes": measurement.bytes_moved,
        "flops": measurement.flops or None,
        "samples_discarded": measurement.discarded,
        "precision": measurement.ci_width,
    }
    for part in (case, measurement.conditions, measurement.resources, relations.get(case, Relations())):
        named |= {field.name: getattr(part, field.name) for field in fields(part)}
    named |= {f"predicted_{name}": value for name, value in asdict(measurement.prediction).items()}
    return Row(**{name: named[name] if name in named else getattr(measurement, name) for name in COLUMNS})


def to_text(value: object) -> str:
    """A value as a CSV field: floats with all digits, None empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def to_fields(row: Row) -> list[str]:
    """The fields of a row of cases.csv."""
    return [to_text(getattr(row, column)) for column in COLUMNS]


def from_fields(record: Mapping[str, str | None]) -> Row:
    """The row of a CSV record; columns that later versions added may be absent, and are then None.

    Raises:
        ValueError: if a required column is missing or a field does not have its column's type.
    """
    if missing := [column for column in REQUIRED if record.get(column) is None]:
        raise ValueError(f"the column {missing[0]} is missing")
    texts = {column: record.get(column) or (None if column in _OPTIONAL else "") for column in COLUMNS}
    try:
        row = _ROW.validate_python(texts)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ValueError(f"the column {first['loc'][0]} holds {first['input']!r}") from None
    if row.schema_version != SCHEMA_VERSION:
        raise ValueError(f"schema version {row.schema_version}; this smembench reads {SCHEMA_VERSION}")
    if row.problem not in PROBLEMS:
        raise ValueError(f"there is no problem {row.problem!r}")
    for column in _POSITIVE if row.ok else ():
        if not (getattr(row, column) or 0) > 0:
            raise ValueError(f"an ok case has no positive {column}")
    return row


def sample_fields(run_id: str, measurements: Sequence[Measurement]) -> Iterator[list[str]]:
    """The rows of samples.csv; only successful cases have samples."""
    for measurement in measurements:
        for sample in measurement.samples:
            values = (
                SCHEMA_VERSION,
                run_id,
                measurement.case.id,
                sample.round,
                sample.index,
                sample.elapsed_ms,
            )
            yield [to_text(value) for value in values]
