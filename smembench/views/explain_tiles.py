"""``smembench explain``: what the TMA and the tensor cores do with tiles in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.explain.counters import TILES
from smembench.explain.tiles import TileTraffic
from smembench.views.columns import number, scaled
from smembench.views.sections import Section, table


def tiles(found: Sequence[TileTraffic], flops: int) -> Section:
    """A line for each kind of access, and what a launch of ``flops`` FLOP moves of the tiles."""
    return table(
        "Tiles in shared memory, by TMA and tensor cores",
        found,
        {
            "line": lambda each: str(each.access.line),
            "access": _access,
            "array": lambda each: each.access.array,
            "elements": lambda each: f"{each.access.rows}×{each.access.columns}",
            "wavefronts\nper 8×16 B": lambda each: number(each.per_core_matrix),
            "shared\nbytes": lambda each: scaled(each.shared_bytes, "B"),
            "global\nbytes": lambda each: "" if each.access.operand else scaled(each.global_bytes, "B"),
        },
        words=("line", "access", "array"),
    ).below(sentence=" ".join(_sentences(found, flops)))


def _access(tiles: TileTraffic) -> str:
    access = tiles.access
    if access.operand is None:
        return f"{access.kind} of {access.matrix}"
    return f"operand {access.matrix}{', transposed' if access.operand.transposed else ''}"


def _sentences(found: Sequence[TileTraffic], flops: int) -> list[str]:
    of = {each.kind: [one for one in found if one.access.kind == each.kind] for each in TILES}
    copied, stored = (sum(each.global_bytes for each in of[kind]) for kind in ("copy", "store"))
    read = sum(each.shared_bytes for each in of["operand"])
    together = sorted({(each.access.matrix, each.access.blocks) for each in of["copy"] if each.access.blocks > 1})
    shared_by = [f"tiles of {matrix} to {blocks} blocks at once" for matrix, blocks in together]
    moved = []
    if copied:
        moved.append(
            f"the TMA copies {scaled(copied, 'B')} from global memory{_beside(_rate(flops, copied), *shared_by)}"
        )
    if stored:
        moved.append(f"the TMA writes {scaled(stored, 'B')} there")
    if read:
        moved.append(f"the tensor cores read {scaled(read, 'B')} of shared memory{_beside(_rate(flops, read))}")
    counters = [each.total.removesuffix(".sum") for each in TILES if of[each.kind]]
    return [
        f"Per launch {', '.join(moved)}.",
        f"No thread requests these bytes, and no share above includes them; ncu counts them as {', '.join(counters)}.",
    ]


def _rate(flops: int, moved: int) -> str:
    return f"{number(flops / moved)} FLOP per byte" if flops else ""


def _beside(*said: str) -> str:
    return f" ({'; '.join(filter(None, said))})" if any(said) else ""
