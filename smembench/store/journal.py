"""The journal of a run: a JSON line for every finished case, on disk before the next begins."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from smembench.case import Case
from smembench.measurement import Conditions, Measurement, Sample, Status


def encode(measurement: Measurement) -> dict[str, Any]:
    """A measurement as plain data."""
    return {
        "case": measurement.case.to_dict(),
        "status": measurement.status.value,
        "started_at_utc": measurement.started_at_utc,
        "bytes_moved": measurement.bytes_moved,
        "flops": measurement.flops,
        "shared_bytes": measurement.shared_bytes,
        "reason": measurement.reason,
        "verified": measurement.verified,
        "max_error": measurement.max_error,
        "samples": [[sample.round, sample.index, sample.elapsed_ms] for sample in measurement.samples],
        "conditions": asdict(measurement.conditions),
        "peak_gb_s": measurement.peak_gb_s,
    }


def decode(data: Mapping[str, Any]) -> Measurement:
    """The measurement that ``encode`` wrote."""
    return Measurement(
        **{
            **data,
            "case": Case.from_dict(data["case"]),
            "status": Status(data["status"]),
            "samples": tuple(Sample(*sample) for sample in data["samples"]),
            "conditions": Conditions(**data["conditions"]),
        }
    )


class Journal:
    """An append-only file of measurements."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = path.open("x", encoding="utf-8")

    def append(self, measurement: Measurement) -> None:
        """Write one line and wait until it is on disk."""
        self._stream.write(json.dumps(encode(measurement)) + "\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def discard(self) -> None:
        """Close and remove: everything it held is in the run's files."""
        self._stream.close()
        self.path.unlink()


def read(path: Path) -> list[Measurement]:
    """Measurements of a journal, a torn last line left out."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [decode(json.loads(line)) for line in lines[:-1] if line]
