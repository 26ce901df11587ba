"""Schema 1 of cases.csv and samples.csv: what each column means, and rows to and from measurements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case, parameters_of
from smembench.model.measurement import Conditions, Measurement
from smembench.store.relations import Relations

SCHEMA_VERSION = 1
SAMPLE_COLUMNS = ("schema_version", "run_id", "case_id", "round", "sample", "elapsed_ms")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of cases.csv; the fields are its columns, in order. What does not apply is None, an empty field.

    ``shared_bytes`` is one block's tile (one thread's tile buffer on the CPU). ``elapsed_ms`` is the median a
    launch. ``bytes`` and ``flops`` are the problem's counts a launch; ``effective_gb_s`` and ``gflop_s`` are
    those over the median, in 10^9 a second. ``percent_of_copy`` compares with memcpy (cudaMemcpy device to
    device, NumPy's copy on the CPU), ``percent_of_copygmem`` with copyGmem of the same block,
    ``percent_of_peak`` with memory clock × 2 × bus width, with the arithmetic peak where there are FLOPs, or with 128
    bytes a clock and multiprocessor where shared memory is measured; ``bytes_per_clock`` are those of one.
    ``max_error``: transpose, the fraction of elements that differ; matmul, ‖out − ref‖/‖ref‖. ``precision`` is
    the relative half-width of the median's 95 % interval, ``converged`` whether it is as small as was asked.
    ``within_cache``: the arrays fit the last-level cache, so the bandwidth is not the memory's. ``cpu_waiting``:
    share of time the threads of a CPU case waited for a core. ``predicted_…``: see ``Prediction``; ``registers`` and
    ``local_bytes``: see ``Resources``; ``stride``: see ``Case``.
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
    verified: bool
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
    converged: bool | None
    within_cache: bool | None
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
        """Whether its times were taken while the GPU throttled, or other processes took the cores away."""
        return Conditions(throttle_reasons=self.throttle_reasons, cpu_waiting=self.cpu_waiting).disturbed

    @property
    def block(self) -> Block | None:
        """Block dimensions, if the kernel has any."""
        return None if self.block_x is None or self.block_y is None else Block(self.block_x, self.block_y)

    @property
    def case(self) -> Case:
        """The case this row is of."""
        return Case(
            self.problem,
            self.kernel,
            self.device,
            self.dtype,
            self.m,
            self.n,
            self.k,
            self.block,
            self.pad,
            self.cache,
            self.compiler,
            self.stride,
            parameters_of(self.case_id),
        )


COLUMNS = tuple(field.name for field in fields(Row))
REQUIRED = COLUMNS[: COLUMNS.index("started_at_utc") + 1]
"""The columns every schema-1 file has; those after them are additions."""
_POSITIVE = ("elapsed_ms", "elapsed_ms_min", "elapsed_ms_q1", "elapsed_ms_q3", "elapsed_ms_max", "bytes")
"""What every case that succeeded has."""
_HINTS = get_type_hints(Row)


def row_of(run_id: str, measurement: Measurement, relations: Mapping[Case, Relations]) -> Row:
    """The row of a measurement."""
    case, summary, conditions = measurement.case, measurement.summary, measurement.conditions
    related = relations.get(case, Relations())
    return Row(
        schema_version=SCHEMA_VERSION,
        run_id=run_id,
        case_id=case.id,
        problem=case.problem,
        kernel=case.kernel,
        device=case.device,
        compiler=case.compiler,
        dtype=case.dtype,
        m=case.m,
        n=case.n,
        k=case.k,
        block_x=case.block.x if case.block else None,
        block_y=case.block.y if case.block else None,
        pad=case.pad,
        shared_bytes=measurement.shared_bytes or None,
        cache=case.cache,
        status=measurement.status.value,
        reason=measurement.reason or None,
        verified=measurement.verified,
        max_error=measurement.max_error,
        samples=len(measurement.samples),
        elapsed_ms=summary.median if summary else None,
        elapsed_ms_min=summary.min if summary else None,
        elapsed_ms_q1=summary.q1 if summary else None,
        elapsed_ms_q3=summary.q3 if summary else None,
        elapsed_ms_max=summary.max if summary else None,
        bytes=measurement.bytes_moved,
        effective_gb_s=measurement.effective_gb_s,
        flops=measurement.flops or None,
        gflop_s=measurement.gflop_s,
        percent_of_copy=related.percent_of_copy,
        percent_of_peak=measurement.percent_of_peak,
        speedup_vs_cpu=related.speedup_vs_cpu,
        speedup_vs_naive=related.speedup_vs_naive,
        sm_clock_mhz=conditions.sm_clock_mhz,
        temperature_c=conditions.temperature_c,
        power_w=conditions.power_w,
        throttle_reasons=conditions.throttle_reasons,
        started_at_utc=measurement.started_at_utc,
        percent_of_copygmem=related.percent_of_copygmem,
        rounds=measurement.rounds,
        samples_discarded=measurement.discarded,
        precision=measurement.precision,
        converged=measurement.converged,
        within_cache=measurement.within_cache,
        memory_clock_mhz=conditions.memory_clock_mhz,
        other_processes=conditions.other_processes,
        cpu_mhz=conditions.cpu_mhz,
        cpu_governor=conditions.cpu_governor,
        cpu_load=conditions.cpu_load,
        cpu_waiting=conditions.cpu_waiting,
        predicted_load_conflict=measurement.prediction.load_conflict,
        predicted_store_conflict=measurement.prediction.store_conflict,
        predicted_load_sectors=measurement.prediction.load_sectors,
        predicted_store_sectors=measurement.prediction.store_sectors,
        predicted_occupancy=measurement.prediction.occupancy,
        stride=case.stride,
        predicted_constant_addresses=measurement.prediction.constant_addresses,
        bytes_per_clock=measurement.bytes_per_clock,
        registers=measurement.resources.registers,
        local_bytes=measurement.resources.local_bytes,
    )


def to_text(value: Any) -> str:
    """A value as it stands in a CSV field: floats in full precision, None empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def to_fields(row: Row) -> list[str]:
    """The fields of a row of cases.csv."""
    return [to_text(getattr(row, column)) for column in COLUMNS]


def from_fields(record: Mapping[str, str]) -> Row:
    """The row of a record read by column name.

    Raises:
        ValueError: for a missing column or a field that is not of its type.
    """
    values: dict[str, Any] = {}
    for column in COLUMNS:
        # Columns that later versions added may be absent, and are then empty.
        text = record.get(column)
        if text is None and column in REQUIRED:
            raise ValueError(f"the column {column} is missing")
        values[column] = _from_text(text or "", str(_HINTS[column]), column)
    row = Row(**values)
    if row.schema_version != SCHEMA_VERSION:
        raise ValueError(f"schema version {row.schema_version}; this smembench reads {SCHEMA_VERSION}")
    if row.problem not in PROBLEMS:
        raise ValueError(f"there is no problem {row.problem!r}")
    for column in _POSITIVE if row.ok else ():
        if not (getattr(row, column) or 0) > 0:
            raise ValueError(f"an ok case has no positive {column}")
    return row


def _from_text(text: str, hint: str, column: str) -> Any:
    if text == "" and "None" in hint:
        return None
    try:
        if "bool" in hint:
            return {"true": True, "false": False}[text]
        if "float" in hint:
            if not math.isfinite(value := float(text)):
                raise ValueError
            return value
        return int(text) if "int" in hint else text
    except (KeyError, ValueError):
        raise ValueError(f"the column {column} holds {text!r}") from None


def sample_fields(run_id: str, measurements: Sequence[Measurement]) -> Iterator[list[str]]:
    """The fields of every row of samples.csv; only successful cases have samples."""
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
