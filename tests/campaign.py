"""How much the random tests try: ``SMEMBENCH_CAMPAIGN`` multiplies it and gives other seeds. Trials to store."""

from __future__ import annotations

import os
import random

from smembench.model.case import Case
from smembench.model.measurement import Status, Trial

CASE = Case("transpose", "memcpy", "cpu", "float32", 8, 8)
CAMPAIGN = int(os.environ.get("SMEMBENCH_CAMPAIGN", "1"))


def chance(name: str) -> random.Random:
    """Random numbers of one campaign, the same in every run of its size."""
    return random.Random(f"{name} {CAMPAIGN}")


def trials(count: int) -> list[Trial]:
    """Trials of ``CASE``, one per round, each with a sample of its own."""
    begun = "2026-01-01T00:00:00+00:00"
    return [Trial(CASE, n, Status.OK, begun, verified=True, samples=(1 / (3 + n),)) for n in range(count)]
