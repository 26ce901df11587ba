"""Requests of one warp that are counted on a GPU, and by which rule their counts are foreseen.

Drawing them is a pure function of a seed, so the process that launches them and the one that reads the counters draw
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from smembench.explain.banks import bank_of, wavefronts
from smembench.explain.coalescing import sectors
from smembench.explain.warp import active_lanes
from smembench.model.hardware import BANKS, WARP, WORD_BYTES
from warp_requests.patterns import PATTERNS

Addresses = tuple[int | None, ...]
Rule = Callable[[Addresses, int, str], int]
"""What a counter should say of addresses, bytes of an element and kind."""

_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared{}.sum"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_ANY = _SHARED.format("")
_OF_A_LAUNCH = 1
"""What the counter of all wavefronts has in every launch beside its one request: in 350 of 350 on an H200, and on an
H100, of ldmatrix, stmatrix and atomic additions (results/reference/h200-shared-requests-doctor.csv, h100-…)."""
COUNTERS = {
    "loads and stores of shared memory": (_SHARED.format("_op_ld"), _SHARED.format("_op_st")),
    "other instructions on shared memory": (_ANY,),
    "loads and stores of global memory": (_SECTORS.format("ld"), _SECTORS.format("st")),
}
"""ncu's counters by what they count, a process each: those of all together would take several passes per launch."""

_FEWER = 20
"""A family beside those that are asked about gets this part of their requests."""


@dataclass(frozen=True, slots=True)
class Family:
    """Requests of one instruction.

    Attributes:
        kind: what the instruction does, such as ``load``.
        width: bytes of an element.
        entry: the kernel that does it, in ``requests_c``.
        metric: ncu's counter.
        rule: by which its counts are foreseen.
        guess: the rule in words if ``explain`` does not predict by it, so that an exception is no failure.
        lanes: how many lanes give an address, the first ones. If fewer than 32, none of them is inactive.
        asked: whether the command is about this family; the others get fewer requests.
        capability: the least compute capability that has the instruction.
    """

    kind: str
    width: int
    entry: str
    metric: str
    rule: Rule
    guess: str = ""
    lanes: int | None = None
    asked: bool = False
    capability: tuple[int, int] = (5, 0)


@dataclass(frozen=True, slots=True)
class Request:
    """One request: a byte address per lane, None for an inactive lane, and the name of its pattern."""

    family: Family
    pattern: str
    addresses: Addresses

    @property
    def predicted(self) -> int:
        """The count by the family's rule."""
        return self.family.rule(self.addresses, self.family.width, self.family.kind)

    def __str__(self) -> str:
        """The addresses as words, a dash for an inactive lane."""
        return " ".join("-" if address is None else str(address) for address in self.addresses)


def _as_stores(addresses: Addresses, width: int, kind: str) -> int:
    return wavefronts(addresses, width, "store") + _OF_A_LAUNCH


def _in_turns(addresses: Addresses, width: int, kind: str) -> int:
    """As if lanes of one bank took turns, even for the same word; by the parts of the warp in which stores go."""
    lanes, result = min(WARP, BANKS * WORD_BYTES // width), _OF_A_LAUNCH
    for first in range(0, WARP, lanes):
        banks = [0] * BANKS
        for _, address in active_lanes(addresses[first : first + lanes], width):
            for byte in range(address, address + width, WORD_BYTES):
                banks[bank_of(byte)] += 1
        result += max(banks)
    return result


def _sectors(addresses: Addresses, width: int, kind: str) -> int:
    return sectors(addresses, width)


def _families() -> Iterator[Family]:
    for kind, short in (("load", "ld"), ("store", "st")):
        for width in (4, 8, 16, 1, 2):
            counter = _SHARED.format(f"_op_{short}")
            yield Family(kind, width, f"{kind}{width}", counter, wavefronts, asked=width >= 4)
    for name, width in (("add", 4), ("cas", 4), ("cas", 8)):
        guess = "lanes of a bank take turns"
        yield Family(f"atomic {name}", width, f"atomic_{name}{width}", _ANY, _in_turns, guess)
    for name, since in (("ldmatrix", (7, 5)), ("stmatrix", (9, 0))):
        for count in (1, 2, 4):
            rule = _ANY, _as_stores, "as stores of 16 bytes"
            yield Family(f"{name}.x{count}", 16, f"{name}{count}", *rule, lanes=8 * count, capability=since)
    for width in (4, 8, 16):
        yield Family("cp.async", width, f"async{width}", _ANY, _as_stores, "as stores", capability=(8, 0))
    for kind, short in (("load", "ld"), ("store", "st")):
        for width in (1, 2, 4, 8, 16):
            yield Family(f"global {kind}", width, f"global_{kind}{width}", _SECTORS.format(short), _sectors)


FAMILIES: Sequence[Family] = tuple(_families())


def drawn(seed: int, count: int, capability: tuple[int, int]) -> list[Request]:
    """At least ``count`` requests of the families that are asked about, and fewer of the others, of each pattern."""
    asked = sum(family.asked for family in FAMILIES)
    result = []
    for family in FAMILIES:
        if family.capability <= capability:
            rng = Random(f"{seed} {family.entry}")
            for number in range(-(-count // (asked if family.asked else _FEWER))):
                pattern = [*PATTERNS][number % len(PATTERNS)]
                result.append(Request(family, pattern, _addresses(family, pattern, rng)))
    return result


def part(requests: Sequence[Request], what: str) -> list[Request]:
    """The requests that are counted by these of the ``COUNTERS``."""
    return [request for request in requests if request.family.metric in COUNTERS[what]]


def _addresses(family: Family, pattern: str, rng: Random) -> Addresses:
    places = PATTERNS[pattern](rng)
    if family.lanes is not None:
        some = next(place for place in places if place is not None)
        places = [some if place is None else place for place in places[: family.lanes]]
    result = [None if place is None else place * family.width for place in places]
    return (*result, *[None] * (WARP - len(result)))
