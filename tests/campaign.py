"""How much the campaigns of faults try: ``SMEMBENCH_CAMPAIGN`` multiplies it, and gives other seeds."""

from __future__ import annotations

import os
import random

CAMPAIGN = int(os.environ.get("SMEMBENCH_CAMPAIGN", "1"))


def chance(name: str) -> random.Random:
    """Random numbers of one campaign, the same in every run of its size."""
    return random.Random(f"{name} {CAMPAIGN}")
