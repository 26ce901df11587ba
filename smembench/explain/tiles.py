"""Tiles in shared memory that the TMA copies there and writes from there, and that tensor cores read for ``wgmma``.

They are no requests of threads. A copy or a store is of one thread, an operand of the 128 threads of a warp group.
Tensor cores take an operand as core matrices, eight rows of 16 bytes (PTX ISA, "wgmma", "Shared Memory Matrix Layout").
Where these lie follows from the matrix descriptor: with the swizzle of 128 bytes bits 4 to 6 of an address change by
bits 7 to 9. How many wavefronts a core matrix takes is counted as for ``ldmatrix``, which reads such a matrix, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from smembench.explain.banks import wavefronts
from smembench.explain.lockstep import Group
from smembench.explain.requests import Integers
from smembench.kernels.intrinsics.bulk_copy import CHUNK, ROW_BYTES, TILE_ALIGNMENT
from smembench.kernels.intrinsics.operands import Operand
from smembench.kernels.intrinsics.warp_group import GROUP
from smembench.kernels.program import TensorMap
from smembench.model.groups import grouped
from smembench.model.hardware import SECTOR_BYTES

CORE_ROWS = 8
"""Rows of a core matrix."""


class Matrix(NamedTuple):
    """A matrix in global memory as a launch passes it to a kernel for its copies: the array's name, and its map."""

    name: str
    itemsize: int
    described: TensorMap


_LINE = ROW_BYTES // SECTOR_BYTES
"""Sectors of a line of 128 bytes, and of a row of a tile."""
_LEAST, _LEAST_ZEROS = 2, 3
"""Sectors of a packet to several blocks, and of one with a row's zeros. Found on an H100 in 27 products of at most four
steps along k, whose rows of B begin at all multiples of 16 bytes in a line; 1000³, 1320³ and 1480³, counted there, too,
agree to the last sector (results/reference/h100-explain-multicast.csv)."""
_ADDED = ("shared_bytes", "global_bytes", "arriving_bytes", "wavefronts")


@dataclass(frozen=True, slots=True)
class TileAccess:
    """What an instruction does with a tile in shared memory.

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
        operand: what a matrix descriptor states of it, if it is one.
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
        """What it has in common with accesses elsewhere in the matrix."""
        return replace(self, global_bytes=0, arriving_bytes=0)


@dataclass(frozen=True, slots=True)
class TileTraffic:
    """All accesses of one kind that a launch makes in a line to tiles of a matrix.

    Attributes:
        access: one of them.
        count: accesses; of an operand, products of tiles that are 128 bytes deep along k.
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
    found = grouped(tiles, lambda access: access.alike)
    return tuple(
        TileTraffic(
            alike,
            source(alike.line),
            sum(tiles[each] for each in of_line),
            *(sum(tiles[each] * getattr(each, of) for each in of_line) for of in _ADDED),
        )
        for alike, of_line in sorted(found.items(), key=lambda item: (item[0].line, item[0].kind, item[0].matrix))
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
    """Where the 16 bytes lie that would lie at an address, with a swizzle of 128, 64 or 32 bytes; 0 for none."""
    return address ^ (address // ROW_BYTES % (swizzle // CHUNK) * CHUNK if swizzle else 0)


@cache
def operand_wavefronts(operand: Operand, start: int) -> int:
    """The wavefronts of all core matrices of an operand."""
    return sum(wavefronts(rows, CHUNK, "load") for rows in core_matrices(operand, start))


class TileRecorder:
    """Records what the threads of a block start; a trace's ``cuda`` has it for the intrinsics.

    Attributes:
        found: how often each access is made, in all blocks of the grid.
    """

    def __init__(self, line: Callable[[], int]) -> None:
        self.found: Counter[TileAccess] = Counter()
        self._line = line
        self._group = Group(np.arange(0))
        self._started: list[tuple[Callable[..., TileAccess], Sequence[Any]]] = []
        self._threads: Counter[TileAccess] = Counter()

    def enter(self, group: Group) -> None:
        """Begin with a group of threads."""
        self._group, self._started = group, []

    def leave(self) -> None:
        """The threads that are still going have run to the end: keep what they started."""
        threads, going = self._group.threads, self._group.going
        for access, numbers in self._started:
            of_threads = [np.broadcast_to(np.asarray(each), threads.shape)[going].tolist() for each in numbers]
            for values, count in Counter(zip(*of_threads, strict=True)).items():
                self._threads[access(*values)] += count

    def leave_block(self, weight: int) -> None:
        """The block has ended, which stands for so many."""
        for access, count in self._threads.items():
            self.found[access] += weight * (count // GROUP if access.kind == "operand" else count)
        self._threads.clear()

    def copied(self, tile: Any, matrix: Matrix, column: Any, row: Any, blocks: int = 1) -> None:
        """Each thread starts to copy the tile at (row, column) of a matrix, to so many blocks."""
        self._started.append((self._moving("copy", tile, matrix, blocks), (column, row)))

    def stored(self, tile: Any, matrix: Matrix, column: Any, row: Any) -> None:
        """Each thread starts to write a tile to (row, column) of a matrix."""
        self._started.append((self._moving("store", tile, matrix), (column, row)))

    def multiplied(self, tile: Any, place: Any, operand: Operand) -> None:
        """The threads of each warp group start products of an operand that begins at a place of shared memory."""
        addresses, _ = tile.located([np.asarray(place)], operand.rows * operand.row_bytes)
        self._started.append((partial(_read, self._line(), tile, operand), (addresses,)))

    def _moving(self, kind: str, tile: Any, matrix: Matrix, blocks: int = 1) -> Callable[..., TileAccess]:
        """What a copy or a store of a tile does, by the column and row of the matrix."""
        rows, row_bytes = matrix.described.tile_rows, matrix.described.row_bytes
        access = TileAccess(
            *(self._line(), kind, matrix.name, tile.name, rows, row_bytes // matrix.itemsize),
            shared_bytes=blocks * rows * row_bytes,
            blocks=blocks,
        )
        return partial(_moved, access, matrix)


def _moved(access: TileAccess, matrix: Matrix, column: int, row: int) -> TileAccess:
    """The access with the bytes of global memory that a copy or a store at (row, column) of the matrix moves."""
    whole, itemsize = matrix.described, matrix.itemsize
    high, above = inside(whole.rows, row, access.rows, whole.apart)
    width, left = inside(whole.columns, column, access.columns)
    first = ((row + (above + np.arange(high)) * whole.apart) * whole.stride + column + left) * itemsize
    return moving(access, first, width * itemsize, whole.row_bytes)


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


def inside(side: int, first: int, count: int, apart: int = 1) -> tuple[int, int]:
    """How many of ``count`` places from ``first`` on, so far ``apart``, a side has; and how many lie before it."""
    before = min(max(-first, 0), count)
    return min(max(-((first - side) // apart), 0), count) - before, before


def _parts(first: Integers, wide: int) -> Integers:
    """The sectors that each row of so many bytes has, by line of 128 bytes from the one where it begins."""
    begin, end = first // SECTOR_BYTES, (first + wide - 1) // SECTOR_BYTES + 1
    lines = begin // _LINE * _LINE + np.arange(-(-wide // ROW_BYTES) + 1)[:, None] * _LINE
    return np.clip(end, lines, lines + _LINE) - np.clip(begin, lines, lines + _LINE)


def _packet(sectors: Any, blocks: int, least: int) -> np.ndarray[Any, Any]:
    """The sectors of the packets in which so many arrive: to several blocks at once, at least so many each."""
    return np.where(np.asarray(sectors) > 0, np.maximum(sectors, least if blocks > 1 else 0), 0)


def _read(line: int, tile: Any, operand: Operand, start: int) -> TileAccess:
    return TileAccess(
        *(line, "operand", operand.name, tile.name, operand.rows, operand.row_bytes // tile.itemsize),
        shared_bytes=operand.rows * operand.row_bytes,
        operand=operand,
        wavefronts=operand_wavefronts(operand, start % TILE_ALIGNMENT),  # over these bytes the swizzle repeats
    )
