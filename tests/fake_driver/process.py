"""A process on the fake driver: how it is begun, how it ends, what it prints."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from warm import Forked

FakeDriver = Callable[..., subprocess.Popen[str] | Forked]
"""Starts ``python -m`` with these arguments on the fake driver, whose settings are given by name."""

FEW = ("--samples", "3", "--rounds", "1", "--precision", "90", "--max-seconds", "1", "--warmup", "0")
"""Options of a run that is to be short."""


def ended(process: subprocess.Popen[str] | Forked, code: int = 0) -> tuple[str, str]:
    """What it printed, and its errors, once it ends with this code."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, out + err
    assert "Traceback" not in err
    return out, err
