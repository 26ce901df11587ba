"""Tiles in shared memory that the TMA copies there and writes from there, and that tensor cores read for ``wgmma``.

They are no requests of threads. A copy or a store is of one thread, an operand of the 128 threads of a warp group.
Tensor cores take an operand as core matrices, eight rows of 16 bytes (PTX ISA, "wgmma", "Shared Memory Matrix Layout").
Where these lie follows from the matrix descriptor: with the swizzle of 128 bytes bits 4 to 6 of an address change by
bits 7 to 9. How many wavefronts a core matrix takes is counted as for ``ldmatrix``, which reads such a matrix, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from smembench.explain.banks import wavefronts
from smembench.explain.requests import Integers
from smembench.kernels.intrinsics.bulk_copy import CHUNK, ROW_BYTES
from smembench.kernels.intrinsics.operands import Operand
from smembench.model.groups import grouped
from smembench.model.hardware import SECTOR_BYTES

CORE_ROWS = 8
"""Rows of a core matrix."""


_LINE = ROW_BYTES // SECTOR_BYTES
"""Sectors of a line of 128 bytes, and of a row of a tile."""
_LEAST, _LEAST_ZEROS = 2, 3
"""Sectors of a packet to several blocks, and of one with a row's zeros. Found on an H100 in 27 products of at most four
steps along k, whose rows of B begin at all multiples of 16 bytes in a line; 1000³, 1320³ and 1480³, counted there, too,
agree to the last sector (results/reference/h100-explain-multicast.csv)."""
_ADDED = ("shared_bytes", "global_bytes", "arriving_bytes", "wavefronts")


@dataclass(frozen=True, slots=True)
class TileAccess:
    """An instruction's access to a tile in shared memory.

    Attributes:
        line: in the kernel's file.
        kind: ``copy`` or ``store`` by the TMA, or ``operand`` of wgmma.
        matrix: whose elements they are: the problem's name for it.
        array: the shared array.
        rows, columns: of the tile, in elements as they lie.
        shared_bytes: bytes of shared memory, in all blocks that a copy reaches.
        global_bytes: of the sectors of global memory that it touches; 0 of an operand.
        arriving_bytes: of the packets by which a copy arrives in all blocks that it reaches, zeros beyond the edges of
            the matrix included.
        blocks: blocks of a cluster that a copy reaches.
        operand: the fields of its matrix descriptor, if it is one.
        wavefronts: all that its core matrices take, if it is one.
    """

    line: int
    kind: str
    matrix: str
    array: str
    rows: int
    columns: int
    shared_bytes: int
    global_bytes: int = 0
    arriving_bytes: int = 0
    blocks: int = 1
    operand: Operand | None = None
    wavefronts: int = 0

    @property
    def alike(self) -> TileAccess:
        """The key of all such accesses anywhere in the matrix."""
        return replace(self, global_bytes=0, arriving_bytes=0)


@dataclass(frozen=True, slots=True)
class TileTraffic:
    """All accesses of one kind that a launch makes in a line to tiles of a matrix.

    Attributes:
        access: one of them.
        count: accesses; of an operand, instructions that read it.
        shared_bytes, global_bytes, arriving_bytes, wavefronts: as ``TileAccess``, of all.
    """

    access: TileAccess
    source: str
    count: int
    shared_bytes: int
    global_bytes: int
    arriving_bytes: int
    wavefronts: int

    @property
    def per_core_matrix(self) -> float | None:
        """Wavefronts that a core matrix of an operand takes: 1 at best, 8 at worst."""
        return CORE_ROWS * CHUNK * self.wavefronts / self.shared_bytes if self.wavefronts else None


def tile_traffic(tiles: Mapping[TileAccess, int], source: Callable[[int], str]) -> tuple[TileTraffic, ...]:
    """The accesses of a launch to tiles, in the order of the source, whose lines ``source`` has."""
    groups = grouped(tiles, lambda access: access.alike)
    return tuple(
        TileTraffic(
            alike,
            source(alike.line),
            sum(tiles[access] for access in of_line),
            *(sum(tiles[access] * getattr(access, of) for access in of_line) for of in _ADDED),
        )
        for alike, of_line in sorted(groups.items(), key=lambda item: (item[0].line, item[0].kind, item[0].matrix))
    )


def core_matrices(operand: Operand, start: int) -> Iterator[list[int]]:
    """The addresses of the rows of each core matrix of an operand that begins at an address of shared memory."""
    pitch = operand.swizzle or CHUNK
    for left in range(-(-operand.row_bytes // pitch)):
        for top in range(operand.rows // CORE_ROWS):
            corner = start + left * operand.leading + top * operand.stride
            for chunk in range(0, min(pitch, operand.row_bytes), CHUNK):
                yield [swizzled(corner + row * pitch + chunk, operand.swizzle) for row in range(CORE_ROWS)]


def swizzled(address: int, swizzle: int) -> int:
    """The address of the 16 bytes of an unswizzled address, with a swizzle of 128, 64 or 32 bytes; 0 for none."""
    return address ^ (address // ROW_BYTES % (swizzle // CHUNK) * CHUNK if swizzle else 0)


@cache
def operand_wavefronts(operand: Operand, start: int) -> int:
    """The wavefronts of all core matrices of an operand."""
    return sum(wavefronts(rows, CHUNK, "load") for rows in core_matrices(operand, start))


def moving(access: TileAccess, first: Integers, wide: int, row_bytes: int) -> TileAccess:
    """An access with the bytes of global memory that it moves.

    Args:
        access: a copy or a store.
        first: where the rows begin that the matrix has, in bytes; the other rows of a tile are zeros.
        wide: bytes of such a row that the matrix has.
        row_bytes: of a row of the tile.
    """
    high = len(first) if wide else 0
    parts = _parts(first, wide) if high else np.zeros((1, 0), np.int64)
    # Beside elements zeros are a packet of their own; a row of zeros alone is a line in any case.
    zeros = high * _packet(-(-(row_bytes - wide) // SECTOR_BYTES), access.blocks, _LEAST_ZEROS)
    arriving = int(_packet(parts, access.blocks, _LEAST).sum()) + int(zeros)
    arriving += (access.rows - high) * row_bytes // SECTOR_BYTES
    return replace(
        access,
        global_bytes=SECTOR_BYTES * int(parts.sum()),
        arriving_bytes=SECTOR_BYTES * access.blocks * arriving if access.kind == "copy" else 0,
    )


def inside(side: int, first: int, count: int) -> tuple[int, int]:
    """The number of ``count`` places from ``first`` that lie on a side, and of those before it."""
    before = min(max(-first, 0), count)
    return min(max(side - first, 0), count) - before, before


def _parts(first: Integers, wide: int) -> Integers:
    """The sectors of each row of ``wide`` bytes, by line of 128 bytes from the one where it begins."""
    begin, end = first // SECTOR_BYTES, (first + wide - 1) // SECTOR_BYTES + 1
    lines = begin // _LINE * _LINE + np.arange(-(-wide // ROW_BYTES) + 1)[:, None] * _LINE
    return np.clip(end, lines, lines + _LINE) - np.clip(begin, lines, lines + _LINE)


def _packet(sectors: Any, blocks: int, least: int) -> np.ndarray[Any, Any]:
    """The sectors of the packets in which ``sectors`` arrive: ``least`` at least per packet to several blocks."""
    return np.where(np.asarray(sectors) > 0, np.maximum(sectors, least if blocks > 1 else 0), 0)
