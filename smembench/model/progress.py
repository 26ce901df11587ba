"""Progress of long work: a callback per step, and the default that shows nothing."""

from __future__ import annotations

from collections.abc import Callable

Step = Callable[[str, int, int], None]
"""Called when a step begins: its name, its number and how many there are."""


def unseen(*what: object) -> None:
    """Do nothing: the default of callbacks."""
