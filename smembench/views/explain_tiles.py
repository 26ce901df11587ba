"""``smembench explain``: what the TMA and the tensor cores do with tiles in shared memory."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.explain.counters import TILES
from smembench.explain.tiles import TileTraffic
from smembench.views.columns import number, scaled
from smembench.views.sections import Section, table


def tiles(traffic: Sequence[TileTraffic], flops: int) -> Section:
    """A line for each kind of access, and what a launch of ``flops`` FLOP moves of the tiles."""
    return table(
        "Tiles in shared memory, by TMA and tensor cores",
        traffic,
        {
            "line": lambda tile: str(tile.access.line),
            "access": _access,
            "array": lambda tile: tile.access.array,
            "elements": lambda tile: f"{tile.access.rows}×{tile.access.columns}",
            "wavefronts\nper 8×16 B": lambda tile: number(tile.per_core_matrix),
            "shared\nbytes": lambda tile: scaled(tile.shared_bytes, "B"),
            "global\nbytes": lambda tile: "" if tile.access.operand else scaled(tile.global_bytes, "B"),
        },
        words=("line", "access", "array"),
    ).below(sentence=" ".join(_sentences(traffic, flops)))


def _access(tiles: TileTraffic) -> str:
    access = tiles.access
    if access.operand is None:
        return f"{access.kind} of {access.matrix}"
    return f"operand {access.matrix}{', transposed' if access.operand.transposed else ''}"


def _sentences(traffic: Sequence[TileTraffic], flops: int) -> list[str]:
    of = {metric.kind: [one for one in traffic if one.access.kind == metric.kind] for metric in TILES}
    copied, stored = (sum(tile.global_bytes for tile in of[kind]) for kind in ("copy", "store"))
    read = sum(tile.shared_bytes for tile in of["operand"])
    together = sorted({(tile.access.matrix, tile.access.blocks) for tile in of["copy"] if tile.access.blocks > 1})
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
    counters = [metric.total.removesuffix(".sum") for metric in TILES if of[metric.kind]]
    return [
        f"Per launch {', '.join(moved)}.",
        f"No thread requests these bytes, and no share above includes them; ncu counts them as {', '.join(counters)}.",
    ]


def _rate(flops: int, moved: int) -> str:
    return f"{number(flops / moved)} FLOP per byte" if flops else ""


def _beside(*texts: str) -> str:
    return f" ({'; '.join(filter(None, texts))})" if any(texts) else ""
