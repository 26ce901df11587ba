"""The rules of bank conflicts and of coalescing, checked by counters on random requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from smembench.explain.ncu import installed
from smembench.model.errors import UsageError
from smembench.toolchains.nvrtc import TOOLCHAIN
from warp_requests.requests import COUNTERS, Request, drawn, part
from warp_requests.watched import watched

Done = Callable[[str, int, int], None]
"""Called with what is counted now, how many requests are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A request and what the hardware counted: wavefronts in shared memory, or sectors of global memory."""

    request: Request
    count: int

    @property
    def unit(self) -> str:
        """``wavefronts`` or ``sectors``."""
        return "sectors" if "sectors" in self.request.family.metric else "wavefronts"

    @property
    def agrees(self) -> bool:
        """Whether the rule holds."""
        return self.request.predicted == self.count


def compare(seed: int, count: int, capability: str, done: Done) -> Iterator[Counted]:
    """Count the requests of a seed on the GPU, of this compute capability, a launch for each.

    On Ctrl-C the iterator raises the KeyboardInterrupt after what was counted before.

    Raises:
        UsageError: if NVRTC or ncu is missing; the iterator does if ncu does not return a figure per launch.
    """
    if reason := TOOLCHAIN.unavailable():
        raise UsageError(f"needs NVRTC: {reason}")
    installed()
    return _counted(seed, count, capability, done)


def _counted(seed: int, count: int, capability: str, done: Done) -> Iterator[Counted]:
    major, minor = capability.split(".")
    requests = drawn(seed, count, (int(major), int(minor)))
    before = 0
    for what, metrics in COUNTERS.items():
        asked = part(requests, what)
        launched = partial(_launched, done, what, before, len(requests))
        launched(0)
        with TemporaryDirectory() as folder:
            stop = Path(folder, "stop")
            child = ["warp_requests.child", str(seed), str(count), capability, what, str(stop)]
            result, cut = watched(child, metrics, stop, launched, launches=len(asked))
        of_metrics = zip(*(result.get(metric, ()) for metric in metrics), strict=False)
        for request, figures in zip(asked, of_metrics, strict=False):
            yield Counted(request, round(figures[metrics.index(request.family.metric)]))
        if cut:
            raise KeyboardInterrupt
        before += len(asked)


def _launched(done: Done, what: str, before: int, of: int, number: int) -> None:
    done(what, before + number, of)


def failures(result: Iterable[Counted]) -> list[Counted]:
    """Those that contradict a rule by which ``explain`` predicts."""
    return [item for item in result if not (item.request.family.guess or item.agrees)]
