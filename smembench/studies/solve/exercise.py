"""An exercise: a kernel to complete or repair, launches with their right results, and what it may cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.explain.banks import bank_of, conflict_degree, worst_part
from smembench.explain.costs import Costs, SharedAccess
from smembench.model.hardware import WARP, WORD_BYTES

Array = NDArray[Any]
Pair = tuple[int, int]

_FOLDER = Path(__file__).parent


class Launch(NamedTuple):
    """A launch: blocks, threads, the arrays that are read, and what the first argument has to be afterwards."""

    grid: Pair
    block: Pair
    inputs: Sequence[Array]
    expected: Array

    @property
    def size(self) -> str:
        """The sides of the inputs."""
        return ", ".join("x".join(map(str, each.shape)) for each in self.inputs)


class Fault(NamedTuple):
    """What is wrong, in words, and the line; 0 for none."""

    line: int
    text: str


class Demand(NamedTuple):
    """A figure, its name, and what keeps it above a limit."""

    name: str
    figure: Callable[[Costs], float]
    faults: Callable[[Costs, float], Iterator[Fault]]


@dataclass(frozen=True, slots=True)
class Exercise:
    """An exercise.

    Attributes:
        name: of its file, too.
        kernel: the name of the function.
        what: one line for lists.
        hint: what helps without telling the solution.
        launches: made of random numbers; the cost of the first is that of the exercise.
        demands: the highest value of each figure.
    """

    name: str
    kernel: str
    what: str
    hint: str
    launches: Callable[[np.random.Generator], Sequence[Launch]]
    demands: Mapping[Demand, float] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """What a student gets."""
        return _FOLDER / "files" / f"{self.name}.py"

    @property
    def solution(self) -> Path:
        """A solution, with the reason in its docstring."""
        return _FOLDER / "solutions" / f"{self.name}.py"


def _conflicts(costs: Costs, most: float) -> Iterator[Fault]:
    for access in costs.shared:
        if _degree(access) > most:
            yield Fault(access.site.line, _conflict(costs, access))


def _degree(access: SharedAccess) -> float:
    """The n of the worst n-way conflict of an access."""
    return conflict_degree(access.worst.addresses, access.site.width, access.site.kind)


def _worst(costs: Costs) -> float:
    return max(map(_degree, costs.shared), default=1)


def _conflict(costs: Costs, access: SharedAccess) -> str:
    """The worst request of an access, and two of its threads that need different words of a bank."""
    addresses, width, kind = access.worst.addresses, access.site.width, access.site.kind
    lanes, banks = worst_part(addresses, width, kind)
    bank = max(range(len(banks)), key=lambda each: len(banks[each]))
    first: dict[int, int] = {}
    for lane in lanes:
        at = addresses[lane] if lane < len(addresses) else None
        if at is not None and bank_of(at) == bank:
            first.setdefault(at // WORD_BYTES, _warp(costs, access) * WARP + lane)
    one, other = [*first.values()][:2]
    return (
        f"{_degree(access):.3g}-way bank conflict: threads {one} and {other} {kind} different "
        f"words of bank {bank}; wanted none"
    )


def _warp(costs: Costs, access: SharedAccess) -> int:
    """The first warp with the worst request."""
    worst = [-1 if at is None else at for at in access.worst.addresses]
    of_site = (each.addresses for each in costs.trace.accesses if each.site.in_kernel == access.site.in_kernel)
    return next(int(np.argwhere(same)[0][1]) for each in of_site if (same := (each == worst).all(2)).any())


def _sectors(costs: Costs, most: float) -> Iterator[Fault]:
    for access in costs.memory:
        if access.sectors > most:
            text = f"a warp's {access.site.kind} moves {access.sectors:.3g} sectors of 32 bytes; wanted {most:g}"
            yield Fault(access.site.line, text)


def _shared_bytes(costs: Costs, most: float) -> Iterator[Fault]:
    if costs.shared_bytes > most:
        yield Fault(0, f"a block takes {costs.shared_bytes} bytes of shared memory; wanted {most:g} at most")


def _load_requests(costs: Costs, most: float) -> Iterator[Fault]:
    loads = [access for access in costs.memory if access.site.kind == "load"]
    if costs.load_requests > most:
        worst = max(loads, key=lambda access: access.requests)
        text = f"warps load {costs.load_requests} times from global memory; wanted {most:g} times at most"
        yield Fault(worst.site.line, text)


CONFLICTS = Demand("n-way bank conflict", _worst, _conflicts)
SECTORS = Demand(
    "sectors per request",
    lambda costs: max((access.sectors for access in costs.memory), default=0),
    _sectors,
)
SHARED_BYTES = Demand("bytes of shared memory", lambda costs: costs.shared_bytes, _shared_bytes)
LOAD_REQUESTS = Demand("loads of warps from global memory", lambda costs: costs.load_requests, _load_requests)
