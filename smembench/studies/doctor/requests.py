"""Requests of one warp that are counted on a GPU, and by which rule their counts are foreseen.

Drawing them is a pure function of a seed, so the process that launches them and the one that reads the counters draw
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from smembench.explain.banks import wavefronts
from smembench.explain.coalescing import sectors
from smembench.explain.warp import active_lanes
from smembench.model.hardware import BANKS, WARP, WORD_BYTES
from smembench.studies.doctor.patterns import PATTERNS

Addresses = tuple[int | None, ...]

_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared{}.sum"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_ANY = _SHARED.format("")
METRICS = (_ANY, _SHARED.format("_op_ld"), _SHARED.format("_op_st"), _SECTORS.format("ld"), _SECTORS.format("st"))

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
        rule: what the counter should say of addresses.
        guess: the rule in words if ``explain`` does not predict by it, so that an exception is no failure.
        lanes: how many lanes give an address, the first ones. If fewer than 32, none of them is inactive.
        asked: whether the command is about this family; the others get fewer requests.
        capability: the least compute capability that has the instruction.
    """

    kind: str
    width: int
    entry: str
    metric: str
    rule: Callable[[Addresses], int]
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

    def __str__(self) -> str:
        """The addresses as words, a dash for an inactive lane."""
        return " ".join("-" if address is None else str(address) for address in self.addresses)


def _banks(width: int, kind: str) -> Callable[[Addresses], int]:
    return lambda addresses: wavefronts(addresses, width, kind)


def _turns(width: int) -> Callable[[Addresses], int]:
    """As if lanes of one bank took turns, even for the same word; by the parts of the warp in which stores go."""

    def count(addresses: Addresses) -> int:
        lanes, found = min(WARP, BANKS * WORD_BYTES // width), 0
        for first in range(0, WARP, lanes):
            banks = [0] * BANKS
            for _, address in active_lanes(addresses[first : first + lanes], width):
                for byte in range(address, address + width, WORD_BYTES):
                    banks[byte // WORD_BYTES % BANKS] += 1
            found += max(banks)
        return found

    return count


def _families() -> list[Family]:
    found = []
    for kind in ("load", "store"):
        for width in (4, 8, 16, 1, 2):
            metric = _SHARED.format("_op_ld" if kind == "load" else "_op_st")
            found.append(Family(kind, width, f"{kind}{width}", metric, _banks(width, kind), asked=width >= 4))
    for operation, width in (("add", 4), ("cas", 4), ("cas", 8)):
        entry = f"atomic_{operation}{width}"
        found.append(
            Family(f"atomic {operation}", width, entry, _ANY, _turns(width), guess="lanes of a bank take turns")
        )
    for kind, capability in (("ldmatrix", (7, 5)), ("stmatrix", (9, 0))):
        for count in (1, 2, 4):
            entry, rule, guess = f"{kind}{count}", _banks(16, "store"), "as a store of 16 bytes"
            matrices = Family(f"{kind}.x{count}", 16, entry, _ANY, rule, guess, lanes=8 * count, capability=capability)
            found.append(matrices)
    for width in (4, 8, 16):
        rule = _banks(width, "store")
        found.append(Family("cp.async", width, f"async{width}", _ANY, rule, guess="as a store", capability=(8, 0)))
    for kind, short in (("load", "ld"), ("store", "st")):
        for width in (1, 2, 4, 8, 16):

            def rule_of(addresses: Addresses, width: int = width) -> int:
                return sectors(addresses, width)

            metric = _SECTORS.format(short)
            found.append(Family(f"global {kind}", width, f"global_{kind}{width}", metric, rule_of))
    return found


FAMILIES: Sequence[Family] = tuple(_families())


def drawn(seed: int, count: int, capability: tuple[int, int]) -> list[Request]:
    """At least ``count`` requests of the families that are asked about, and fewer of the others, of each pattern."""
    asked = sum(family.asked for family in FAMILIES)
    found = []
    for family in FAMILIES:
        if family.capability <= capability:
            rng = Random(f"{seed} {family.entry}")
            for number in range(-(-count // (asked if family.asked else _FEWER))):
                pattern = [*PATTERNS][number % len(PATTERNS)]
                found.append(Request(family, pattern, _addresses(family, pattern, rng)))
    return found


def _addresses(family: Family, pattern: str, rng: Random) -> Addresses:
    places = PATTERNS[pattern](rng)
    if family.lanes is not None:
        some = next(place for place in places if place is not None)
        places = [some if place is None else place for place in places[: family.lanes]]
    found = [None if place is None else place * family.width for place in places]
    return (*found, *[None] * (WARP - len(found)))
