"""Schema 1 of cases.csv and samples.csv: the columns, and rows from measurements and from text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from operator import attrgetter
from reprlib import repr as shortened
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

from pydantic import BeforeValidator, TypeAdapter, ValidationError, with_config

from smembench.kernels.problems import PROBLEMS
from smembench.kernels.time.problem import PROBLEM as TIME
from smembench.model.case import BY_ROWS, CACHES, UNIFORM, Block, Case, parameters_of
from smembench.model.measurement import Conditions, Measurement, Status
from smembench.model.ranges import Count, Milliseconds, Ratio, Reading, Size, WholeReading
from smembench.model.sustained import Moment, Sustained
from smembench.store.relations import Relations

SCHEMA_VERSION = 1
SAMPLE_COLUMNS = ("schema_version", "run_id", "case_id", "round", "sample", "elapsed_ms")
MOMENT_COLUMNS = ("schema_version", "run_id", "case_id", *(field.name for field in fields(Moment)))


def flag(text: str) -> bool:
    """A bool in a CSV field; pandas writes ``True``, spreadsheets ``TRUE``.

    Raises:
        ValueError: for any other text.
    """
    if text.lower() not in ("true", "false"):
        raise ValueError(f"{shortened(text)} is neither true nor false")
    return text.lower() == "true"


Flag = Annotated[bool, BeforeValidator(flag)]


Inputs = Annotated[str, BeforeValidator(lambda text: text or UNIFORM)]
"""A distribution; files from before the column have uniform inputs only."""
BLayout = Annotated[str, BeforeValidator(lambda text: text or BY_ROWS)]
"""A layout of B; files from before the column have it by rows."""


@with_config(allow_inf_nan=False)
@dataclass(frozen=True, slots=True)
class Row:
    """A row of cases.csv. The fields are its columns, in order; None, an empty field, means not applicable.

    A column with the name of a field of Case, Measurement, Conditions, Resources or Relations is that field, one named
    ``predicted_…`` is a field of Prediction. The whole is 100 in a ``percent_…`` and 1 in a fraction.

    Attributes:
        schema_version, run_id, case_id: the file's schema, the run, and the case's name, the same in every run.
        problem, kernel, device, compiler, dtype, cache: names: transpose, memcpy, cuda:0, numba, float32, warm.
        m, n, k, pad, stride: mostly in elements; see Case.
        block_x, block_y: threads of a block along x and y.
        shared_bytes: one block's tile; on the CPU one thread's tile buffer.
        status, reason: ``ok``, or how else the case ended and why.
        verified, converged, within_cache: true or false; see Measurement.
        max_error: a fraction: relative error of products (‖out − ref‖/‖ref‖) and sums, else elements that differ.
        samples, samples_discarded, rounds: numbers of samples used and not used, and of rounds that have samples; of a
            case without a time of those that were tried.
        elapsed_ms, elapsed_ms_…: median, smallest, quartiles and largest, in ms per launch.
        precision: half-width of the 95 % interval of the samples' median, at which sampling aims, a fraction of the
            median: 0.01 is ±1 %.
        bytes, flops: the problem's counts per launch: bytes moved, floating-point operations.
        effective_gb_s, gflop_s: these counts divided by the median time, in 10^9 per second.
        bytes_per_clock: bytes of shared memory per clock and multiprocessor.
        percent_of_copy: speed in percent of the ceiling's: of a transpose memcpy, on the CPU NumPy's copy.
        percent_of_copygmem: speed in percent of copyGmem's in the same block.
        percent_of_peak: in percent of memory clock × 2 × bus width, of the arithmetic peak, or of 128 bytes of shared
            memory per clock and multiprocessor, whichever bounds the problem.
        speedup_vs_cpu, speedup_vs_naive: the other's time divided by this one's.
        sm_clock_mhz, memory_clock_mhz, cpu_mhz, temperature_c, power_w: MHz, °C and watts.
        throttle_reasons, cpu_governor, started_at_utc: names, joined by ``+``; a name; ISO 8601.
        cpu_load, cpu_waiting: threads, averaged over one minute; time waited for a core, a fraction of elapsed time.
        predicted_load_conflict, predicted_store_conflict: wavefronts relative to conflict-free ones: 32 is 32-way.
        predicted_load_sectors, predicted_store_sectors: 32-byte sectors per request to global memory.
        predicted_load_line, predicted_store_line: lines of the source with the most wavefronts in conflict.
        predicted_occupancy: a fraction.
        predicted_constant_addresses: distinct addresses per request to constant memory.
        registers, local_bytes: 32-bit registers and bytes of local memory, per thread.
        other_processes, ecc_corrected, ecc_uncorrected, pcie_generation, pcie_width, nvlinks_up: numbers.
        inputs, b_layout: names: uniform, and how the second matrix of a product lies in memory, rows or columns.
        uncertainty: half-width of the 95 % interval of elapsed_ms, which covers what differs between rounds if there
            are three; a fraction of elapsed_ms.
        code_hash: of a kernel's instructions, constants, registers and local memory, without names and lines.
        notes: what a reader of the times has to know, such as that nobody checked the result.
        percent_of_copy_low, percent_of_copy_high, percent_of_copygmem_low, percent_of_copygmem_high: ends of the 95 %
            interval of these ratios.
        speedup_vs_cpu_low, speedup_vs_cpu_high, speedup_vs_naive_low, speedup_vs_naive_high: likewise.
        burst_ms, steady_ms, energy_mj: of a load of seconds, per launch; see Sustained.
        burst_uncertainty, steady_uncertainty, energy_uncertainty: half-widths of their 95 % intervals, as fractions.
    """

    schema_version: int
    run_id: str
    case_id: str
    problem: str
    kernel: str
    device: str
    compiler: str
    dtype: str
    m: Size
    n: Size
    k: Size | None
    block_x: Size | None
    block_y: Size | None
    pad: Count | None
    shared_bytes: Count | None
    cache: str
    status: str
    reason: str | None
    verified: Flag
    max_error: Ratio | None
    samples: Count
    elapsed_ms: Milliseconds | None
    elapsed_ms_min: Milliseconds | None
    elapsed_ms_q1: Milliseconds | None
    elapsed_ms_q3: Milliseconds | None
    elapsed_ms_max: Milliseconds | None
    bytes: Count
    effective_gb_s: Ratio | None
    flops: Count | None
    gflop_s: Ratio | None
    percent_of_copy: Ratio | None
    percent_of_peak: Ratio | None
    speedup_vs_cpu: Ratio | None
    speedup_vs_naive: Ratio | None
    sm_clock_mhz: WholeReading | None
    temperature_c: WholeReading | None
    power_w: Reading | None
    throttle_reasons: str | None
    started_at_utc: str
    percent_of_copygmem: Ratio | None
    rounds: Count | None
    samples_discarded: Count | None
    precision: Ratio | None
    converged: Flag | None
    within_cache: Flag | None
    memory_clock_mhz: WholeReading | None
    other_processes: WholeReading | None
    cpu_mhz: Reading | None
    cpu_governor: str | None
    cpu_load: Reading | None
    cpu_waiting: Reading | None
    predicted_load_conflict: Ratio | None
    predicted_store_conflict: Ratio | None
    predicted_load_sectors: Ratio | None
    predicted_store_sectors: Ratio | None
    predicted_occupancy: Ratio | None
    stride: Count | None
    predicted_constant_addresses: Ratio | None
    bytes_per_clock: Ratio | None
    registers: Count | None
    local_bytes: Count | None
    ecc_corrected: WholeReading | None
    ecc_uncorrected: WholeReading | None
    pcie_generation: WholeReading | None
    pcie_width: WholeReading | None
    nvlinks_up: WholeReading | None
    inputs: Inputs
    b_layout: BLayout
    uncertainty: Ratio | None
    code_hash: str | None
    notes: str | None
    burst_ms: Milliseconds | None
    burst_uncertainty: Ratio | None
    steady_ms: Milliseconds | None
    steady_uncertainty: Ratio | None
    energy_mj: Ratio | None
    energy_uncertainty: Ratio | None
    percent_of_copy_low: Ratio | None
    percent_of_copy_high: Ratio | None
    percent_of_copygmem_low: Ratio | None
    percent_of_copygmem_high: Ratio | None
    speedup_vs_cpu_low: Ratio | None
    speedup_vs_cpu_high: Ratio | None
    speedup_vs_naive_low: Ratio | None
    speedup_vs_naive_high: Ratio | None
    predicted_load_line: Count | None
    predicted_store_line: Count | None

    @property
    def ok(self) -> bool:
        """True if the row has figures."""
        return self.status == "ok"

    @property
    def right(self) -> bool:
        """True if the result was verified, or needed no check: kernels of the user's may have none."""
        return self.verified or (self.ok and self.problem == TIME.name)

    @property
    def interval(self) -> float | None:
        """Relative half-width of the 95 % interval of elapsed_ms; from before ``uncertainty``, that of its samples."""
        return self.precision if self.uncertainty is None else self.uncertainty

    @property
    def disturbed(self) -> bool:
        """True if the GPU throttled or other processes used the cores during its samples."""
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
        """The case of this row, without the launch of a kernel of the user's, which run.json has."""
        return Case(*_of_case(self))


COLUMNS = tuple(field.name for field in fields(Row))
_of_case = attrgetter(*(field.name for field in fields(Case) if field.name != "launch"))
REQUIRED = COLUMNS[: COLUMNS.index("started_at_utc") + 1]
"""The columns of every schema-1 file; later columns are additions."""
_OPTIONAL = frozenset(name for name, hint in get_type_hints(Row).items() if NoneType in get_args(hint))
_POSITIVE = ("elapsed_ms", "elapsed_ms_min", "elapsed_ms_q1", "elapsed_ms_q3", "elapsed_ms_max", "bytes")
"""Columns that are positive in every successful case; a launch of the user's may have no arrays."""
_ROW = TypeAdapter(Row)
_KNOWN: dict[str, Collection[str]] = {
    "problem": PROBLEMS,
    "dtype": {dtype for problem in PROBLEMS.values() for dtype in problem.dtypes},
    "cache": CACHES,
    "inputs": {name for problem in PROBLEMS.values() for name in problem.distributions},
    "b_layout": {name for problem in PROBLEMS.values() for name in problem.b_layouts},
    "status": tuple(Status),
}
"""Values of the columns of names. Kernels come and go, so their column takes any name."""
_DEVICE = re.compile(r"cpu|cuda:\d{1,4}")


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
        **{f"elapsed_ms_{name}": getattr(summary, name, None) for name in ("min", "q1", "q3", "max")},
        "bytes": measurement.bytes_moved,
        "flops": measurement.flops or None,
        "samples_discarded": measurement.discarded,
        "precision": measurement.ci_width,
    }
    load, related = Sustained.of(measurement.moments), relations.get(case, Relations())
    for part in (case, measurement.conditions, measurement.resources, related, load):
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
        raise ValueError(misfit(error)) from None
    if row.schema_version != SCHEMA_VERSION:
        raise ValueError(f"schema version {row.schema_version}; this smembench reads {SCHEMA_VERSION}")
    for column, names in _KNOWN.items():
        if getattr(row, column) not in names:
            raise ValueError(f"there is no {column} {shortened(getattr(row, column))}")
    if not _DEVICE.fullmatch(row.device):
        raise ValueError(f"there is no device {shortened(row.device)}")
    for column in _POSITIVE if row.ok else ():
        if not getattr(row, column) and not (column == "bytes" and row.problem == TIME.name):
            raise ValueError(f"an ok case has no positive {column}")
    if not row.ok and row.elapsed_ms is not None:
        raise ValueError(f"a case with the status {row.status} has an elapsed_ms")
    return row


def misfit(error: ValidationError) -> str:
    """The first column that does not have its type, and what it has."""
    first = error.errors(include_url=False)[0]
    return f"the column {first['loc'][-1]} holds {shortened(first['input'])}"


def moment_fields(run_id: str, moments: Mapping[str, Sequence[Moment]]) -> Iterator[tuple[object, ...]]:
    """The rows of sustained.csv from the batches by case id."""
    for case_id, batches in moments.items():
        for batch in batches:
            yield SCHEMA_VERSION, run_id, case_id, *astuple(batch)


def sample_fields(run_id: str, samples: Mapping[str, Mapping[int, Sequence[float]]]) -> Iterator[tuple[object, ...]]:
    """The rows of samples.csv from the samples by case id and round; only successful cases have any."""
    for case_id, rounds in samples.items():
        for round_, values in rounds.items():
            for index, elapsed_ms in enumerate(values):
                yield SCHEMA_VERSION, run_id, case_id, round_, index, elapsed_ms
