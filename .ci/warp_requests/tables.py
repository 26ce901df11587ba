"""Counted requests by instruction and by pattern, and what contradicts a rule."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.model.device import DeviceInfo
from smembench.model.groups import grouped
from smembench.model.hardware import WARP
from smembench.views.records import Record
from smembench.views.sections import Section, table
from warp_requests.counting import Counted, failures


def sections(result: Sequence[Counted], device: DeviceInfo, seed: int) -> list[Section]:
    """A line per instruction, with the first exception of each, and a line per pattern."""
    families = grouped(result, lambda item: item.request.family)
    predicted = [item for item in result if not item.request.family.guess]
    patterns = grouped(predicted, lambda item: item.request.pattern)
    holding = len(predicted) - len(failures(result))
    return [
        table(
            f"{device.model} · driver {device.driver} · random requests of one warp, seed {seed}",
            families.items(),
            {
                "request": lambda item: item[0].kind,
                "bytes": lambda item: str(item[0].width),
                "requests": lambda item: str(len(item[1])),
                "agree": lambda item: str(_agreeing(item[1])),
                "with": lambda item: f"a guess: {item[0].guess}" if item[0].guess else "explain",
            },
            words=("request", "with"),
        ).below(
            sentence=f"{holding} of {len(predicted)} requests are counted as explain predicts; for the others it has "
            "no rule.",
            notes=[_exception(items) for items in families.values() if _agreeing(items) < len(items)],
        ),
        table(
            "The predicted ones by pattern",
            patterns.items(),
            {
                "pattern": lambda item: item[0],
                "requests": lambda item: str(len(item[1])),
                "agree": lambda item: str(_agreeing(item[1])),
            },
            words=("pattern",),
        ),
    ]


def _exception(result: Sequence[Counted]) -> str:
    """The first that does not agree, in a sentence."""
    first = next(item for item in result if not item.agrees)
    family, pattern = first.request.family, first.request.pattern
    what = f"{family.kind}, {family.width} bytes, {pattern}"
    return f"{what}: {first.request.predicted} predicted, {first.count} counted, at addresses {first.request}"


def _agreeing(result: Sequence[Counted]) -> int:
    return sum(item.agrees for item in result)


def request_records(result: Sequence[Counted]) -> list[Record]:
    """Each request with its count, as in results/reference/h200-shared-requests.csv; global ones have sectors."""
    return [
        {
            "width_bytes": item.request.family.width,
            "kind": item.request.family.kind,
            **{f"lane{lane}": item.request.addresses[lane] for lane in range(WARP)},
            **{what: item.count if what == item.unit else None for what in ("wavefronts", "sectors")},
            "pattern": item.request.pattern,
        }
        for item in result
    ]
