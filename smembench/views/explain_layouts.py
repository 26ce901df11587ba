"""``smembench explain --best-swizzle`` and ``--best-pad``: shared arrays as they are, padded and swizzled."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.explain.launch_layouts import BestLayouts, TriedPads
from smembench.explain.trials import Tried
from smembench.views.columns import number
from smembench.views.records import Record
from smembench.views.sections import Section, table


def layouts(results: Sequence[BestLayouts], heading: str) -> list[Section]:
    """A table per array with conflicts, and a sentence on those without."""
    sections = [_table(best, heading) for best in results if not best.plain.free]
    free = [_verdict(best) for best in results if best.plain.free]
    if free:
        sections.append(Section(heading, [], [], sentence=" ".join(free)))
    return sections


def _table(best: BestLayouts, heading: str) -> Section:
    return table(
        heading,
        _rows(best).items(),
        {
            "layout": lambda row: _name(*row),
            "element (r, c)": lambda row: best.tile.expression(row[1].layout, brackets=best.brackets),
            "load\ndegree": lambda row: number(row[1].loads),
            "store\ndegree": lambda row: number(row[1].stores),
            "bytes": lambda row: str(best.tile.bytes(row[1].layout)),
        },
        words=("layout", "element (r, c)"),
    ).below(sentence=_verdict(best))


def _rows(best: BestLayouts) -> dict[str, Tried]:
    """The layouts that there are, by kind."""
    kinds = {"plain": best.plain, "pad": best.pad, "swizzle": best.swizzle}
    return {kind: tried for kind, tried in kinds.items() if tried}


def _name(kind: str, tried: Tried) -> str:
    return f"pad {tried.layout.pad}" if kind == "pad" else kind


def _verdict(best: BestLayouts) -> str:
    """The layout to use, and the reasons for missing ones."""
    if best.plain.free:
        return f"{best.tile.array.name} has no bank conflicts."
    free = [_name(kind, tried) for kind, tried in _rows(best).items() if tried.free]
    match free:
        case [pad, _]:
            verdict = f"Both {pad} and the swizzle are free of conflicts; the swizzle takes no more memory."
        case ["swizzle"]:
            verdict = "The swizzle is free of conflicts; no pad is."
        case [pad]:
            verdict = f"{pad.capitalize()} is the smallest free of conflicts."
        case _ if best.pad is best.swizzle is None:
            verdict = ""
        case _:
            verdict = "No layout that was tried is free of conflicts."
    return " ".join(filter(None, (verdict, best.reason)))


def layout_records(results: Sequence[BestLayouts]) -> list[Record]:
    """The layouts, for programs."""
    return [
        {
            "array": best.tile.array.name,
            "layout": kind,
            "pad": tried.layout.pad,
            "element": best.tile.expression(tried.layout, brackets=best.brackets),
            "load_conflict": tried.loads,
            "store_conflict": tried.stores,
            "shared_bytes": best.tile.bytes(tried.layout),
        }
        for best in results
        for kind, tried in _rows(best).items()
    ]


def verdict_records(results: Sequence[BestLayouts]) -> list[Record]:
    """The sentences, for programs."""
    return [{"array": best.tile.array.name, "verdict": _verdict(best)} for best in results]


def tried_pads(results: Sequence[TriedPads], heading: str) -> list[Section]:
    """A table of the pads of each array with conflicts, and a sentence on those without."""
    sections = [_pads(pads, heading) for pads in results if len(pads.tried) > 1]
    free = [f"{pads.tile.array.name} has no bank conflicts." for pads in results if len(pads.tried) == 1]
    return sections + ([Section(heading, [], [], sentence=" ".join(free))] if free else [])


def _pads(pads: TriedPads, heading: str) -> Section:
    array, size = pads.tile.array, pads.tile.array.itemsize
    least = min(pads.tried, key=lambda tried: tried.wavefronts)
    verdict = f"The smallest pad free of conflicts is {least.layout.pad}."
    if not least.free:
        verdict = (
            f"No pad up to {pads.tried[-1].layout.pad} is free of conflicts; pad {least.layout.pad} has the fewest."
        )
    return table(
        f"{heading} · {array.name}, rows of {pads.tile.columns} elements of {size} bytes",
        pads.tried,
        {
            "pad": lambda tried: str(tried.layout.pad),
            "load\ndegree": lambda tried: number(tried.loads),
            "store\ndegree": lambda tried: number(tried.stores),
            "bytes": lambda tried: str(pads.tile.bytes(tried.layout)),
        },
    ).below(sentence=verdict)


def pad_rows(results: Sequence[TriedPads]) -> list[Record]:
    """The pads that were tried, for programs."""
    return [
        {
            "array": pads.tile.array.name,
            "row_elements": pads.tile.columns,
            "element_bytes": pads.tile.array.itemsize,
            "pad": tried.layout.pad,
            "load_conflict": tried.loads,
            "store_conflict": tried.stores,
            "shared_bytes": pads.tile.bytes(tried.layout),
        }
        for pads in results
        for tried in pads.tried
    ]
