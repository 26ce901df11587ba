"""GPUs as NVIDIA describes them: what roofs need of a GPU that is not here.

``data_sheets.csv`` has a row per GPU, with the documents that its numbers are from. Peaks are those without sparsity,
of tensor cores with sums in float32; the clock is the boost clock at which float32 has its peak. Tensor cores may have
a lower one, so their peaks are as printed and not computed.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError

_PEAK = "_tflops"
_LEAST = 4
"""Fewest characters of an abbreviated model name."""


class DataSheet(DeviceInfo):
    """A GPU by its data sheet.

    Attributes:
        tflops: peaks by element type, in 10^12 operations per second.
        source: the documents, by title and year.
    """

    tflops: Mapping[str, float]
    source: str


def data_sheet(name: str) -> DataSheet:
    """The GPU with a name such as ``h100``, or a part of one model's such as ``H100 SXM5``.

    Capitals, spaces and hyphens do not matter.

    Raises:
        UsageError: for an unknown one.
    """
    plain, sheets = _plain(name), data_sheets()
    exact = {_plain(known): sheet for known, sheet in sheets.items()}.get(plain)
    alike = [sheet for sheet in sheets.values() if len(plain) >= _LEAST and plain in _plain(sheet.model)]
    if exact is None and len(alike) != 1:
        raise UsageError(f"--gpu {name}: is not among {', '.join(sheets)}; give --cc for another")
    return exact or alike[0]


@cache
def data_sheets() -> Mapping[str, DataSheet]:
    """All GPUs by name."""
    path = Path(__file__).with_name("data_sheets.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return {row["name"]: _sheet(row) for row in csv.DictReader(file)}


def _sheet(row: Mapping[str, str]) -> DataSheet:
    peaks = {column.removesuffix(_PEAK): text for column, text in row.items() if column.endswith(_PEAK)}
    return DataSheet(
        name=row["name"],
        kind="cuda",
        model=row["model"],
        compute_capability=row["compute_capability"],
        sm_count=int(row["multiprocessors"]),
        sm_clock_max_mhz=int(row["boost_mhz"]) if row["boost_mhz"] else None,
        peak_gb_s=float(row["memory_gb_s"]),
        tflops={dtype: float(text) for dtype, text in peaks.items() if text},
        source=row["source"],
    )


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))
