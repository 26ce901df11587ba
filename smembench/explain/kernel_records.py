"""CUPTI's kernel records: when each kernel of this process began and ended on the GPU. Needs no root and no ncu."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, get_args

from smembench.devices.cuda_helpers import Helper

_BUFFER_BYTES = 8 * 2**20
_NOW = 1
"""Flag of a flush that also gives what is in buffers that are not full."""


def why_missing() -> str:
    """A line on why there are no kernel records; "" if there may be."""
    return "" if find_spec("cupti") else "no kernel records: cupti-python is missing (pip install 'smembench[cupti]')"


class KernelRecords:
    """The records since the last call of ``take``; to be made before the first call of CUDA."""

    def __init__(self) -> None:
        from cupti import cupti  # type: ignore[import-not-found, unused-ignore]

        self._cupti: Any = cupti
        self._kind = int(cupti.ActivityKind.CONCURRENT_KERNEL)
        self._spans: list[tuple[int, int]] = []
        cupti.activity_enable(self._kind)
        cupti.activity_register_callbacks(lambda: (_BUFFER_BYTES, 0), self._completed)

    def _completed(self, activities: Sequence[Any]) -> None:
        """Keep the begin and the end of each kernel but the timer's."""
        kernels = (record for record in activities if record.kind == self._kind and record.name not in get_args(Helper))
        self._spans += [(kernel.start, kernel.end) for kernel in kernels]

    def take(self) -> list[float]:
        """The ms of each kernel that has ended, in the order in which they began."""
        self._cupti.activity_flush_all(_NOW)
        spans, self._spans = sorted(self._spans), []
        return [(end - begin) / 1e6 for begin, end in spans]


def per_launch(kernels: Sequence[float], count: int) -> list[float]:
    """The sums over the ``count`` kernels of each launch.

    Raises:
        ValueError: for kernels that are no whole number of launches, or none.
    """
    if not kernels or not count or len(kernels) % count:
        raise ValueError(f"{len(kernels)} kernel records are no whole number of launches of {count} kernels")
    return [sum(kernels[begin : begin + count]) for begin in range(0, len(kernels), count)]
