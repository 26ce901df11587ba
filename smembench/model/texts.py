"""Texts that present a problem to users: its command and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from smembench.model.axis import BLOCK, Axis
from smembench.model.case import Case
from smembench.model.clauses import Compared, Result


class Texts:
    """Texts and options of a problem's command; headings, columns and the closing sentence of its tables."""

    title: ClassVar[str]
    help: ClassVar[str] = ""
    """Text of its command's ``--help``: a first line, what is measured and how it is checked, examples."""
    command: ClassVar[str] = ""
    """The problem whose command measures this one too; if empty, it has its own command."""
    kernel_axes: ClassVar[tuple[Axis, ...]] = (BLOCK,)
    """Axes of its kernels besides the size: block, stride, pad, pad_width."""
    options: ClassVar[tuple[str, ...]] = ("kernel", "dtype", "device", "cache")
    """Options that its command shares with other commands: these, and possibly inputs, b_layout, compiler and peers."""
    strided_kernel: ClassVar[str | None] = None
    """The kernel that its command measures if a stride but no kernel is given; the standard ones if None."""
    strides_in_rows: ClassVar[bool] = False
    """True if one table compares all strides; otherwise each stride has its own table, like a size."""
    columns: ClassVar[tuple[str, ...]]
    """Columns of cases.csv that this problem's tables show besides the time; bars show the first."""

    def size(self, case: Case) -> str:
        """The size in the heading of a table: ``4096×4096``."""
        return case.size.replace("x", "×")

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """Clauses of a sentence on the undisturbed results of one size; none without anything to compare."""
        return []
