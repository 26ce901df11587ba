"""Kernels of the user's, each with its own arguments and check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from smembench.model.case import Case
from smembench.model.clauses import Compared, Result
from smembench.model.problem import ITEMSIZE, OTHER_ITEMSIZES, Problem
from smembench.model.texts import Texts
from smembench.model.user_launch import UserLaunch

if TYPE_CHECKING:
    from smembench.model.problem import Array


NO_DTYPE = "none"
"""In place of the element type of a launch without arrays."""


class Time(Problem):
    """A launch that the case itself describes (``Case.launch``), with ``n`` for the size of that name.

    Its inputs and its check depend on a file of the user's, and are ``launches.contract``'s.
    """

    name = "time"
    order = 100
    dtypes = (*dict.fromkeys([*ITEMSIZE, *OTHER_ITEMSIZES]), NO_DTYPE)
    default_n = 1
    default_blocks = ()
    sizes = ()
    arrays = ("out",)

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """Never called: they come from ``launches.contract``, which reads the user's file."""
        raise NotImplementedError

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Any:
        """Never called, as ``inputs``."""
        raise NotImplementedError

    def sizes_of_arrays(self, case: Case, counts: Sequence[int]) -> tuple[int, ...]:
        """Bytes of the arrays of the launch, in the order of its arguments, with their guards."""
        return launch_of(case).array_bytes

    def bytes_moved(self, case: Case) -> int:
        """The declared bytes; by default every array once."""
        return launch_of(case).bytes

    def flops(self, case: Case) -> int:
        """The declared operations; 0 by default."""
        return launch_of(case).flops

    def input_key(self, case: Case) -> tuple[object, ...]:
        """Launches with the same arguments have the same inputs, and with the same outputs the same reference."""
        launch = launch_of(case)
        return (
            self.name,
            launch.arguments,
            launch.check,
            launch.outputs,
            launch.restored,
            launch.resets,
            launch.scratch,
        )


def launch_of(case: Case) -> UserLaunch:
    """The launch of a case.

    Raises:
        ValueError: for a case of the package's kernels.
    """
    if case.launch is None:
        raise ValueError(f"{case.id} is a case of the package's kernels, without a launch of the user's")
    return case.launch


class TimeTexts(Texts):
    """Tables of the user's kernels."""

    title = "user kernels"
    kernel_axes = ()
    options = ("device", "cache")
    columns = ("effective_gb_s", "gflop_s")

    def size(self, case: Case) -> str:
        """``n 1024``, or nothing without a size of that name."""
        return f"n {case.n}" if case.n > 1 else ""

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """Each kernel beside the first."""
        first, *others = results or (None,)
        parts = [f"{other.kernel} is {compared(other, first)}" for other in others if first is not None]
        return [f"the kernel {parts[0]}", *parts[1:]] if parts else []  # a sentence begins with a capital, no name does


PROBLEM = Time(TimeTexts())
