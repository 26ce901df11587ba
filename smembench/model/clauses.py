# ruff: noqa: D102 - store.schema describes a result's figures, as columns of cases.csv
"""Clauses of the sentence under a table: what problems' summaries have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from smembench.model.case import Block


class Result(Protocol):
    """A measured case with its figures: the part of a row of cases.csv that summaries need."""

    @property
    def kernel(self) -> str: ...
    @property
    def block(self) -> Block | None: ...
    @property
    def pad(self) -> int | None: ...
    @property
    def m(self) -> int: ...
    @property
    def stride(self) -> int | None: ...
    @property
    def elapsed_ms(self) -> float | None: ...
    @property
    def bytes_per_clock(self) -> float | None: ...
    @property
    def percent_of_peak(self) -> float | None: ...
    @property
    def predicted_load_conflict(self) -> float | None: ...
    @property
    def predicted_store_conflict(self) -> float | None: ...


R = TypeVar("R", bound=Result)


class Compared(Protocol):
    """Says ``1.84 times (±0.4 %) as fast as naiveGmem``, or that two results do not differ.

    ``called`` names the other one.
    """

    def __call__(self, result: Result, other: Result, called: str = "") -> str: ...


def time(result: Result) -> float:
    """The median time per launch in ms."""
    return result.elapsed_ms or 0.0


def fastest(results: Sequence[R], kernel: str) -> R | None:
    """The fastest result of a kernel; None if it has no results."""
    return min((result for result in results if result.kernel == kernel), key=time, default=None)


def conflicts(result: Result) -> str:
    """The predicted bank conflicts: ``32-way conflicts of loads``."""
    sides = (("loads", result.predicted_load_conflict), ("stores", result.predicted_store_conflict))
    clauses = [f"{degree:.3g}-way conflicts of {side}" for side, degree in sides if degree and degree > 1]
    return " and ".join(clauses) or "no conflicts"


def conflict_change(before: Result, after: Result) -> str:
    """The predicted conflicts without and with padding, in brackets, which explain its effect; "" if unknown."""
    if None in (before.predicted_load_conflict, after.predicted_load_conflict):
        return ""
    without, padded = conflicts(before), conflicts(after)
    return f" ({without} become {padded})" if without != padded else f" ({padded} in both)"
