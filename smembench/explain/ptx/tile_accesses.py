"""Tiles that no thread requests: copies and stores in bulk, by tensor maps or of bytes in a row, and operands of wgmma.

What a copy brings is not followed. Its bytes count as stored by the thread that starts it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from smembench.explain.mistakes import Brought, Mistake
from smembench.explain.ptx.accesses import Accesses
from smembench.explain.ptx.mbarriers import Mbarriers
from smembench.explain.ptx.program import Instruction, elements
from smembench.explain.ptx.registers import Mask, Registers
from smembench.explain.ptx.values import Run
from smembench.explain.ptx.windows import WINDOW
from smembench.explain.requests import NOWHERE
from smembench.explain.tensor_maps import elements as elements_in
from smembench.explain.tensor_maps import moved
from smembench.explain.tiles import TileAccess, moving, operand_wavefronts
from smembench.kernels.intrinsics.bulk_copy import TILE_ALIGNMENT
from smembench.kernels.intrinsics.operands import STEP_BYTES, Operand
from smembench.kernels.intrinsics.warp_group import GROUP
from smembench.launches.ptx_entry import readable, split
from smembench.launches.tensor_map_argument import TensorMapArgument

_ROWS_OF_A = 64
"""Rows of A per instruction of a warp group."""
_ITEMSIZE = 2
"""Bytes of an element of operands that may be transposed."""
_UNIT = 16
"""Bytes in which a descriptor states addresses."""
_SWIZZLES = (0, 128, 64, 32)
"""Swizzles in bytes by bits 62 and 63 of a descriptor."""


class TileAccesses:
    """Makes functions of instructions that access tiles."""

    def __init__(self, registers: Registers, accesses: Accesses, mbarriers: Mbarriers) -> None:
        self._registers, self._accesses, self._mbarriers = registers, accesses, mbarriers
        self._copied: dict[int, str] = {}

    def enter(self) -> None:
        """Begin a block."""
        self._copied.clear()

    def of_tiles(self, given: Instruction) -> Run | None:
        """A function that makes an instruction's accesses; None if it makes none.

        Raises:
            UsageError: for an instruction that is not traced.
        """
        if given.root == "wgmma":
            return self._operands(given) if "mma_async" in given.parts else None
        if "prefetch" in given.parts or not given.addresses:
            return None
        if "im2col" in given.opcode or "gather4" in given.opcode or "scatter4" in given.opcode:
            raise self._registers.refused(given.called_from.line, given.opcode)
        return self._by_map(given) if "tensor" in given.parts else self._in_a_row(given)

    def _by_map(self, given: Instruction) -> Run:
        """A copy or a store of boxes by a tensor map."""
        copies = given.space == "shared"
        in_shared, in_map = given.addresses[:2] if copies else given.addresses[1::-1]
        base, coordinates = split(in_map.strip("[] "))
        which = self._registers.operand(base, "u8")
        places = [self._registers.operand(text, "i4") for text in elements(coordinates)]
        address, _ = self._registers.address(in_shared)
        ranks = self._ranks(given)

        def move(mask: Mask | None) -> None:
            for thread in self._threads(given, mask):
                described = self._map(given, int(_at(which, thread)))
                if described is None:
                    continue
                name, box = described
                at = [int(_at(place, thread)) for place in places]
                begin, reached = int(_at(address, thread)), ranks(thread)
                blocks = max(len(reached), 1)
                access = TileAccess(
                    *(given.called_from.line, "copy" if copies else "store", name, self._array(begin, given)),
                    *(box.bytes // box.dtype.itemsize // box.box[0], box.box[0], blocks * box.bytes),
                    blocks=blocks,
                )
                if copies:
                    self._copied[begin % WINDOW] = name
                self._accesses.traced.tiles[moved(box, access, at)] += 1
                self._accesses.traced.elements[access.line, elements_in(box, at)] += 1
                self._come(given, thread, (begin, box.bytes), reached)

        return move

    def _in_a_row(self, given: Instruction) -> Run:
        """A copy or a store of bytes in a row."""
        (to, _), (of, _) = [self._registers.address(text) for text in given.addresses[:2]]
        size = self._registers.operand(next(text for text in given.operands if not text.startswith("[")), "u4")
        copies = given.space == "shared"
        within = copies and "global" not in given.parts
        ranks = self._ranks(given)

        def move(mask: Mask | None) -> None:
            for thread in self._threads(given, mask):
                begin, count = int(_at(to if copies else of, thread)), int(_at(size, thread))
                reached = ranks(thread)
                if within:
                    self._accesses.note_bulk(given, np.arange(self._registers.threads) == thread, begin, count)
                else:
                    outside = int(_at(of if copies else to, thread))
                    array = self._registers.memory.array_at(outside)
                    kind, name = "copy" if copies else "store", array.name if array else "global memory"
                    blocks = max(len(reached), 1)
                    access = TileAccess(
                        *(given.called_from.line, kind, name, self._array(begin, given), 1, count, blocks * count),
                        blocks=blocks,
                    )
                    self._accesses.traced.tiles[moving(access, np.array([outside]), count, count)] += 1
                self._come(given, thread, (begin, count), reached)

        return move

    def _operands(self, given: Instruction) -> Run:
        """The operands of ``wgmma`` in shared memory: B, and A if it is not in registers."""
        shape = next((match for part in given.parts if (match := re.fullmatch(r"m64n(\d+)k(\d+)", part))), None)
        if shape is None or "sp" in given.parts:
            raise self._registers.refused(given.called_from.line, given.opcode)
        columns, depth = map(int, shape.groups())
        *_, of_a, of_b = ("0", "0", *given.operands[6:])  # whether they are transposed, only of 16-bit types
        parts = [("B", given.operands[2], columns, of_b)]
        if not given.operands[1].startswith("{"):
            parts.insert(0, ("A", given.operands[1], _ROWS_OF_A, of_a))
        names = [text for _, text, _, _ in parts]
        operands = [
            (name, self._registers.operand(text, "u8"), rows, depth if transposed == "1" else 0)
            for name, text, rows, transposed in parts
        ]

        def multiply(mask: Mask | None) -> None:
            followed = self._accesses.followed(given, mask, names)
            active = np.flatnonzero(followed) if followed is not None else np.arange(self._registers.threads)
            for first in np.unique(active - active % self._registers.block % GROUP):
                for name, descriptor, rows, along in operands:
                    operand, start = decoded(int(_at(descriptor, first)), name, rows, along)
                    self._accesses.traced.tiles[self._read(given, operand, start)] += 1
            self._accesses.give_unknown(given, mask)

        return multiply

    def _read(self, given: Instruction, operand: Operand, start: int) -> TileAccess:
        size = operand.rows * operand.row_bytes
        place = max((begin for begin in self._copied if begin <= start), default=-1)
        matrix, array = self._copied.get(place, operand.name), self._array(start, given)
        return TileAccess(
            *(given.called_from.line, "operand", matrix, array, operand.rows, operand.row_bytes, size),
            operand=operand,
            wavefronts=operand_wavefronts(operand, start % TILE_ALIGNMENT),  # over these bytes the swizzle repeats
        )

    def _threads(self, given: Instruction, mask: Mask | None) -> list[int]:
        """The threads of a mask that know all that they need."""
        names = [name for text in given.addresses for name in self._registers.kernel.registers_in(text)]
        followed = self._accesses.followed(given, mask, [*names, *given.sources])
        threads = np.arange(self._registers.threads) if followed is None else np.flatnonzero(followed)
        return [*map(int, threads)]

    def _ranks(self, given: Instruction) -> Callable[[int], list[int]]:
        """A function of the thread that returns the ranks of the blocks that a multicast reaches; none of others."""
        if "multicast" not in given.opcode:
            return lambda thread: []
        chosen = self._registers.operand(next(text for text in given.operands[3:] if text[0] != "["), "u2")
        return lambda thread: [rank for rank in range(16) if int(_at(chosen, thread)) >> rank & 1]

    def _map(self, given: Instruction, address: int) -> tuple[str, TensorMapArgument] | None:
        """The tensor map at an address, and its name; None, with a note, if there is none."""
        name = self._registers.memory.name_at(address)
        described = self._registers.launch.maps.get(name)
        if described is None:
            self._accesses.note_unknown(given, "a tensor map")
            return None
        return name.partition("$")[0], described

    def _array(self, begin: int, given: Instruction) -> str:
        return readable(self._registers.memory.shared_name(begin, given))

    def _come(self, given: Instruction, thread: int, brought: tuple[int, int], ranks: list[int]) -> None:
        """Count bytes that have come to shared memory, of several blocks at the same place, at the barriers there.

        Of a store they are taken from there.
        """
        (begin, count), barrier = brought, self._barrier(given, thread)
        kind = "store" if given.space == "shared" else "load"
        for place in _places(begin, ranks):
            if (at := self._in_cluster(given, place, thread)) == NOWHERE:
                continue
            order = int(self._accesses.order[thread])
            copy = Brought(given.called_from.line, self._array(begin, given), at, count, thread, order, kind)
            self._accesses.traced.brought.append(copy)
            if kind == "load":
                continue
            one = np.arange(self._registers.threads) == thread
            self._registers.memory.forget("shared", np.full(len(one), place), count, one)
        for place in _places(barrier, ranks) if barrier is not None else ():
            if (at := self._in_cluster(given, place, thread)) != NOWHERE:
                self._mbarriers.come(at, count, np.arange(self._registers.threads) == thread)

    def _barrier(self, given: Instruction, thread: int) -> int | None:
        """The address of the barrier in shared memory that counts the bytes; None for none."""
        if "mbarrier" not in given.opcode:
            return None
        address, _ = self._registers.address(given.addresses[-1])
        return int(_at(address, thread))

    def _in_cluster(self, given: Instruction, place: int, thread: int) -> int:
        """The place of a thread's address in the memory of the cluster; NOWHERE, with a mistake, if it has none."""
        windows, block = self._registers.memory.windows, place // WINDOW - 1
        offset = int(windows.in_cluster(np.full(self._registers.threads, place))[thread])
        if offset != NOWHERE and (windows.blocks > 1 or block < 0):
            return offset
        of_block = f" of block {block} of the cluster, which has {windows.blocks} blocks" if block >= 0 else ""
        text = f"a copy to byte {place % WINDOW} of shared memory{of_block}"
        self._accesses.traced.mistakes.add(Mistake(given.called_from.line, "outside", text))
        return NOWHERE


def _places(address: int, ranks: list[int]) -> list[int]:
    """An address of shared memory, or the same place in the blocks of these ranks."""
    return [address % WINDOW + (rank + 1) * WINDOW for rank in ranks] or [address]


def decoded(descriptor: int, name: str, rows: int, depth: int) -> tuple[Operand, int]:
    """The operand of a matrix descriptor, and its first byte (PTX ISA, "Matrix Descriptor Format").

    Args:
        descriptor: its 64 bits.
        name: the matrix's.
        rows: of A, or columns of B, that an instruction takes.
        depth: elements along k if the operand is transposed: its rows are along k then; else 0.
    """
    start, leading, stride = ((descriptor >> low & 0x3FFF) * _UNIT for low in (0, 16, 32))
    swizzle = _SWIZZLES[descriptor >> 62 & 3]
    if not depth:
        return Operand(name, rows, STEP_BYTES, leading=leading, stride=stride, swizzle=swizzle), start
    if not swizzle:  # then the strides change places
        leading, stride = stride, leading
    return Operand(name, depth, rows * _ITEMSIZE, True, leading, stride, swizzle), start


def _at(value: Callable[[], Any], thread: int) -> Any:
    """An operand's value in a thread."""
    values = value()
    return values[thread] if np.shape(values) else values
