"""The rules of bank conflicts and of coalescing, held against counters on random requests: ``doctor --conflicts``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from smembench.explain.ncu import counted, installed
from smembench.model.errors import UsageError
from smembench.studies.doctor.requests import METRICS, Request, drawn
from smembench.toolchains.nvrtc import TOOLCHAIN

ASKED_BY = "doctor --conflicts"


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


def compare(
    seed: int, count: int, capability: str, begin: Callable[[int], None] = lambda requests: None
) -> list[Counted]:
    """Count the requests of a seed on the GPU, of this compute capability, a launch for each.

    ``begin`` is called with the number of all requests, which take about 15 ms each.

    Raises:
        UsageError: if NVRTC or ncu is missing, and if ncu does not return a figure per launch.
    """
    if reason := TOOLCHAIN.unavailable():
        raise UsageError(f"{ASKED_BY}: {reason}")
    installed(ASKED_BY)
    major, minor = capability.split(".")
    requests = drawn(seed, count, (int(major), int(minor)))
    begin(len(requests))
    found = counted(
        ["smembench.studies.doctor.requests_child", str(seed), str(count)],
        METRICS,
        cache_control="none",
        launches=len(requests),
        asked_by=ASKED_BY,
    )
    return [Counted(request, round(found[request.family.metric][launch])) for launch, request in enumerate(requests)]


def failures(found: Iterable[Counted]) -> list[Counted]:
    """Those that contradict a rule by which ``explain`` predicts."""
    return [item for item in found if not (item.request.family.guess or item.agrees)]
