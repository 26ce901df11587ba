"""``smembench explain --layout``: the wavefronts of a warp's accesses, the banks as a picture, and the cure."""

from __future__ import annotations

from rich.text import Text

from smembench.explain.lanes import Lanes
from smembench.model.text import number_of
from smembench.views.columns import compact
from smembench.views.explain import conflict
from smembench.views.explain_banks import conflict_picture
from smembench.views.explain_cure import cure_line
from smembench.views.records import Record
from smembench.views.sections import Section, table


def lanes_section(lanes: Lanes) -> Section:
    """The accesses, one by one."""
    elements = f"{number_of(lanes.vector, 'element')} of {number_of(lanes.array.itemsize, 'byte')} per lane"
    return table(
        f"One request of a warp to shared memory, {elements}",
        lanes.accesses,
        {
            "access": lambda access: access.site.kind,
            "wavefronts": lambda access: compact(access.wavefronts),
            "without conflicts": lambda access: compact(access.ideal),
            "conflict": conflict,
        },
        words=("access", "conflict"),
    ).below(sentence=" ".join(lanes_cure(lanes) or ["Free of bank conflicts."]))


def lanes_cure(lanes: Lanes) -> list[str]:
    """The cure for the conflicts in Python's notation; empty without conflicts."""
    return [] if lanes.cure is None else [cure_line(lanes.cure, python=True)]


def lanes_picture(lanes: Lanes) -> list[Text]:
    """The banks of the worst access; empty without conflicts."""
    worst = max(lanes.accesses, key=lambda access: access.degree)
    return conflict_picture(lanes.array, worst, 0) if worst.degree > 1 else []


def lanes_records(lanes: Lanes) -> list[Record]:
    """The accesses, for programs."""
    return [
        {
            "kind": access.site.kind,
            "bytes_per_lane": access.site.width,
            "wavefronts": round(access.wavefronts),
            "ideal_wavefronts": round(access.ideal),
            "conflict_degree": access.degree,
            "broadcast": access.broadcast,
        }
        for access in lanes.accesses
    ]
