"""An exercise: a kernel to complete or repair, its launches with their results, and limits on what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.explain.banks import bank_of, conflict_degree, worst_part
from smembench.explain.costs import Costs, SharedAccess
from smembench.explain.warp import active_lanes
from smembench.model.hardware import WARP, WORD_BYTES

Array = NDArray[Any]
Pair = tuple[int, int]

_FOLDER = Path(__file__).parent


class Launch(NamedTuple):
    """A launch: grid, block, the arrays that the kernel reads, and the expected content of its first argument."""

    grid: Pair
    block: Pair
    inputs: Sequence[Array]
    expected: Array

    @property
    def size(self) -> str:
        """The shapes of the inputs."""
        return ", ".join("x".join(map(str, array.shape)) for array in self.inputs)


class Fault(NamedTuple):
    """A fault in a kernel: its line, 0 for none, and a sentence."""

    line: int
    text: str


class Demand(NamedTuple):
    """A figure with an upper limit: its name, its value, and the faults that keep it above a limit."""

    name: str
    figure: Callable[[Costs], float]
    faults: Callable[[Costs, float], Iterator[Fault]]


@dataclass(frozen=True, slots=True)
class Exercise:
    """An exercise.

    Attributes:
        name: of the exercise and of its file.
        kernel: name of the function.
        what: the task in one line.
        launches: from random numbers; the first is the one whose costs are limited.
        demands: the limit of each figure.
        hint: what helps, short of the solution.
    """

    name: str
    kernel: str
    what: str
    launches: Callable[[np.random.Generator], Sequence[Launch]]
    demands: Mapping[Demand, float] = field(default_factory=dict)
    hint: str = ""

    def hinted(self, hint: str) -> Exercise:
        """The exercise with a hint."""
        return replace(self, hint=hint)

    @property
    def file(self) -> Path:
        """The file to complete."""
        return _FOLDER / "files" / f"{self.name}.py"

    @property
    def solution(self) -> Path:
        """A solution, with the reason in its docstring."""
        return _FOLDER / "solutions" / f"{self.name}.py"


def _degree(access: SharedAccess) -> float:
    """The n of the worst n-way conflict of an access."""
    return conflict_degree(access.worst.addresses, access.site.width, access.site.kind)


def _conflicts(costs: Costs, limit: float) -> Iterator[Fault]:
    for access in costs.shared:
        if (degree := _degree(access)) > limit:
            kind, (one, other, bank) = access.site.kind, _conflict(costs, access)
            yield Fault(
                access.site.line,
                f"{degree:.3g}-way bank conflict: threads {one} and {other} {kind} different words of bank {bank}; "
                "wanted none",
            )


def _conflict(costs: Costs, access: SharedAccess) -> tuple[int, int, int]:
    """Two threads that need different words of one bank in the worst request of an access, and the bank."""
    addresses, width = access.worst.addresses, access.site.width
    lanes, words = worst_part(addresses, width, access.site.kind)
    bank = max(range(len(words)), key=lambda number: len(words[number]))
    lane_of: dict[int, int] = {}
    for lane, address in active_lanes(addresses, width):
        for byte in range(address, address + width, WORD_BYTES):
            if lane in lanes and bank_of(byte) == bank:
                lane_of.setdefault(byte // WORD_BYTES, lane)
    one, other, *_ = (_warp(costs, access) * WARP + lane for lane in lane_of.values())
    return one, other, bank


def _warp(costs: Costs, access: SharedAccess) -> int:
    """The first warp with the worst request of an access."""
    worst = [-1 if address is None else address for address in access.worst.addresses]
    for accesses in costs.trace.accesses:
        if accesses.site.in_kernel == access.site.in_kernel and (same := (accesses.addresses == worst).all(2)).any():
            return int(np.argwhere(same)[0][1])
    raise AssertionError("the worst request is one of the trace")


def _sectors(costs: Costs, limit: float) -> Iterator[Fault]:
    for access in costs.memory:
        if access.sectors > limit:
            text = f"a warp's {access.site.kind} moves {access.sectors:.3g} sectors of 32 bytes; wanted {limit:g}"
            yield Fault(access.site.line, text)


def _shared_bytes(costs: Costs, limit: float) -> Iterator[Fault]:
    if costs.shared_bytes > limit:
        yield Fault(0, f"a block takes {costs.shared_bytes} bytes of shared memory; wanted at most {limit:g}")


def _load_requests(costs: Costs, limit: float) -> Iterator[Fault]:
    if costs.load_requests > limit:
        loads = [access for access in costs.memory if access.site.kind == "load"]
        text = f"warps load {costs.load_requests} times from global memory; wanted at most {limit:g}"
        yield Fault(max(loads, key=lambda access: access.requests).site.line, text)


def _wavefronts(costs: Costs, limit: float) -> Iterator[Fault]:
    for array in costs.shared_atomics:
        yield Fault(0, f"atomics on {array}: their wavefronts are not known; use loads and stores")
    if (total := _all_wavefronts(costs)) > limit:
        text = f"shared memory takes {total:g} wavefronts; wanted at most {limit:g}"
        yield Fault(max(costs.shared, key=lambda access: access.of_all).site.line, text)


def _all_wavefronts(costs: Costs) -> float:
    return sum(access.of_all for access in costs.shared)


CONFLICTS = Demand("n-way bank conflict", lambda costs: max(map(_degree, costs.shared), default=1), _conflicts)
SECTORS = Demand(
    "sectors per request", lambda costs: max((access.sectors for access in costs.memory), default=0), _sectors
)
SHARED_BYTES = Demand("bytes of shared memory", lambda costs: costs.shared_bytes, _shared_bytes)
LOAD_REQUESTS = Demand("loads from global memory", lambda costs: costs.load_requests, _load_requests)
WAVEFRONTS = Demand("wavefronts in shared memory", _all_wavefronts, _wavefronts)
