"""Further observations on a slow device: its state where it was slow, beside that of the others of its model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from smembench.store.schema import Row
from smembench.studies.fleet.members import Member
from smembench.studies.fleet.verdict import Group

_LOWER = 0.99
"""A clock or a limit is lower than the others' if it is less than this share of their median."""
_HOTTER_C = 10
"""Degrees above the others' median that are worth a word."""

_LOWER_OF_ROW = (
    ("sm_clock_mhz", "SM clock", " MHz"),
    ("memory_clock_mhz", "memory clock", " MHz"),
    ("pcie_generation", "PCIe generation", ""),
    ("pcie_width", "PCIe lanes", ""),
    ("nvlinks_up", "NVLinks up", ""),
)
_LOWER_OF_DEVICE = (("power_limit_w", "power limit", " W"), ("sm_clock_max_mhz", "SM clock limit", " MHz"))
_OTHER_OF_DEVICE = (("driver", "driver"), ("ecc", "ECC"), ("mig", "MIG"), ("sm_count", "multiprocessors"))
_COUNTS = (
    ("ecc_uncorrected", "uncorrected ECC errors"),
    ("ecc_corrected", "corrected ECC errors"),
    ("other_processes", "other processes on the GPU"),
)


def seen(group: Group, place: int) -> list[str]:
    """Observations on a member that the others do not share, the likeliest cause first."""
    own = [figure.row for one in group.metrics if (figure := one.figures[place])]
    return [*_throttled(own), *_lower(group, place), *_hotter(group, place), *_of_device(group, place), *_counted(own)]


def _throttled(own: Sequence[Row]) -> Iterator[str]:
    reasons = [row.throttle_reasons.split("+") for row in own if row.throttle_reasons not in (None, "none", "")]
    if names := sorted({name for parts in reasons for name in parts}):
        yield f"throttled ({', '.join(names)}) in {len(reasons)} of {len(own)} cases"


def _lower(group: Group, place: int) -> Iterator[str]:
    for name, words, unit in _LOWER_OF_ROW:
        if (pair := _farthest(group, place, name, lambda own, usual: own < _LOWER * usual)) is not None:
            yield f"{words} {pair[0]:g}{unit}, the others' {pair[1]:g}{unit}"


def _hotter(group: Group, place: int) -> Iterator[str]:
    pair = _farthest(group, place, "temperature_c", lambda own, usual: own >= usual + _HOTTER_C)
    if pair is not None:
        yield f"{pair[0]:g} °C, the others {pair[1]:g} °C"


def _farthest(
    group: Group, place: int, name: str, differs: Callable[[float, float], bool]
) -> tuple[float, float] | None:
    """A column's value of a member and the median of the others, in the metric where they are farthest apart."""
    pairs = []
    for one in group.metrics:
        values = [None if figure is None else getattr(figure.row, name) for figure in one.figures]
        others = [value for number, value in enumerate(values) if value is not None and number != place]
        own = values[place]
        if own is not None and others and differs(own, usual := median(others)):
            pairs.append((float(own), float(usual)))
    return max(pairs, key=lambda pair: abs(pair[0] - pair[1]), default=None)


def _of_device(group: Group, place: int) -> Iterator[str]:
    for name, words, unit in _LOWER_OF_DEVICE:
        own, others = _facts(group.members, place, name)
        known = [float(fact) for fact in others if isinstance(fact, int | float)]
        if isinstance(own, int | float) and known and own < _LOWER * (usual := median(known)):
            yield f"{words} {own:g}{unit}, the others' {usual:g}{unit}"
    for name, words in _OTHER_OF_DEVICE:
        own, others = _facts(group.members, place, name)
        if own is not None and others and own not in others:
            yield f"{words} {_shown(own)}, the others' {_shown(others[0])}"


def _facts(members: Sequence[Member], place: int, name: str) -> tuple[object, list[object]]:
    """A fact about a member's device, and the known ones of the others."""
    facts = [getattr(member.info, name, None) for member in members]
    return facts[place], [fact for number, fact in enumerate(facts) if fact is not None and number != place]


def _shown(fact: object) -> str:
    return {True: "on", False: "off"}[fact] if isinstance(fact, bool) else str(fact)


def _counted(own: Sequence[Row]) -> Iterator[str]:
    for name, words in _COUNTS:
        if most := max((getattr(row, name) or 0 for row in own), default=0):
            yield f"{most:g} {words}"
