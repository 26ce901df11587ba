"""A documented claim: the statement, the measured quantity, and the accepted range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from smembench.studies.reproduce.measures import Measure, Pick, Times, rounded_from


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range of values for which a claim holds, ends included."""

    low: float
    high: float = math.inf


FASTER = Bounds(math.nextafter(1.0, 2.0))
"""Of a ratio of times: more than 1, by however little."""
MUCH_FASTER = Bounds(2.0)
"""The meaning of "much", which documents leave open: twice."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a document, or a row of its tables.

    Attributes:
        says: in our words, with the document's numbers.
        measure: the measurement that decides the claim.
        why: what decides the answer, in a sentence.
        holds_in: where the answer has to lie.
        published: the document's own answers by device, in the order of its columns.
        assumed: what the document leaves open.
        true_on: of a limit of the hardware, where it was the documented one; "" if it never was.
        place: the slide's title, or the section.
    """

    says: str
    measure: Measure
    holds_in: Bounds = FASTER
    published: Mapping[str, float] = field(default_factory=dict)
    assumed: str = ""
    true_on: str = ""
    why: str = ""
    place: str = ""

    def because(self, why: str) -> Claim:
        """The claim with what decides the answer."""
        return replace(self, why=why)


def at(place: str, *claims: Claim) -> list[Claim]:
    """The claims of one place."""
    return [replace(claim, place=place) for claim in claims]


def printed(figure: str) -> Bounds:
    """The bounds of what rounds to a printed figure."""
    return Bounds(*rounded_from(figure))


def exactly(value: float) -> Bounds:
    """The bounds of one number."""
    return Bounds(value, value)


BANDWIDTH = Times(Pick("transpose", "memcpy"), Pick("access", "setRowReadRow"))
"""The bandwidth of shared memory without conflicts over that of the memory: both count bytes read and bytes written."""

BANKS = "An SM's banks deliver 128 bytes per clock; the memory is as fast as the copy that reads and writes it."
"""The reason for that ratio."""

BROADCAST = Times(Pick("constant", "globalUniform"), Pick("constant", "constantUniform"))
"""Global memory where all lanes of a warp read one address, over constant memory where they do."""

UNIFORM = Times(Pick("constant", "constantDiverging"), Pick("constant", "constantUniform"))
"""Constant memory where the lanes of a warp read nine addresses, over where they read one."""
