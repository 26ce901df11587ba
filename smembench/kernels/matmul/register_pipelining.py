"""Register pipelining: fragments are loaded one step ahead, and results are visited in serpentine order.

The order of results relieves register bank conflicts. The register file has two banks, of the even and of the odd
registers, each of which delivers one operand per cycle, while a multiply-add has three. What keeps the pipes busy is an
operand kept from the instruction before (``.reuse`` in SASS). Results are therefore visited along a row and back along
the next, or down a column and up the next, so that each multiply-add shares a factor with the one before, also where
the direction turns. ptxas reorders its input but keeps most of that. Findings: results/reference/notes/serpentine.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from smembench.kernels.intrinsics import fragments
from smembench.kernels.matmul.structs import Memory, Offsets
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, device, uint64


@dataclass(frozen=True, slots=True)
class ResultOrder:
    """Order of a thread's multiply-adds: along rows or columns, B as first factor, B's fragment loaded first.

    The last two only affect which registers ptxas chooses.
    """

    by_rows: bool
    b_first: bool = False
    b_early: bool = False

    def results(self, down: int, across: int) -> Iterator[tuple[int, int]]:
        """Row and column of every result of a thread."""
        outer, inner = (down, across) if self.by_rows else (across, down)
        for i in range(outer):
            for j in reversed(range(inner)) if i % 2 else range(inner):
                yield (i, j) if self.by_rows else (j, i)


@cache
def outer_product(tiling: Tiling, order: ResultOrder, buffer: int) -> DeviceFunction:
    """``(memory)``: multiply-add of the outer product of the fragments in register buffer ``buffer``."""
    down, across = tiling.down, tiling.across
    results = tuple(order.results(down, across))
    product = fragments.outer_product(results, across, buffer * down, buffer * across, b_first=order.b_first)

    def multiply(memory: Memory) -> None:
        product(memory.accumulators, memory.fragments.a, memory.fragments.b)

    return device(multiply)


@cache
def load_fragments(tiling: Tiling, order: ResultOrder, buffer: int) -> DeviceFunction:
    """``(memory, at)``: load a step's fragments into register buffer ``buffer``."""
    down, across, size = tiling.down, tiling.across, tiling.vector
    rows_apart, columns_apart = tiling.apart
    load_a = fragments.copy_vectors(tuple((buffer * down + i * size, i * rows_apart) for i in range(down // size)))
    load_b = fragments.copy_vectors(
        tuple((buffer * across + j * size, j * columns_apart) for j in range(across // size))
    )

    def a_early(memory: Memory, at: Offsets) -> None:
        load_a(memory.fragments.a, memory.tiles.a, at.a)
        load_b(memory.fragments.b, memory.tiles.b, at.b)

    def b_early(memory: Memory, at: Offsets) -> None:
        load_b(memory.fragments.b, memory.tiles.b, at.b)
        load_a(memory.fragments.a, memory.tiles.a, at.a)

    return device(b_early if order.b_early else a_early)


@cache
def pipelined_steps(tiling: Tiling, order: ResultOrder, first: int, count: int) -> DeviceFunction:
    """``(memory, at)``: ``count`` unrolled steps from ``first`` on tiles whose first fragments begin at ``at``.

    Each step loads the fragments of the next one, and multiplies those that the step before it loaded.
    """
    if count > 1:
        first_half = pipelined_steps(tiling, order, first, count // 2)
        second_half = pipelined_steps(tiling, order, first + count // 2, count - count // 2)

        def two_halves(memory: Memory, at: Offsets) -> None:
            first_half(memory, at)
            second_half(memory, at)

        return device(two_halves)

    load = load_fragments(tiling, order, (first + 1) % 2)
    multiply = outer_product(tiling, order, first % 2)
    a_next, b_next = (first + 1) * tiling.pitch, (first + 1) * tiling.columns

    def step(memory: Memory, at: Offsets) -> None:
        load(memory, Offsets(uint64(at.a + uint64(a_next)), uint64(at.b + uint64(b_next))))
        multiply(memory)

    return device(step)
