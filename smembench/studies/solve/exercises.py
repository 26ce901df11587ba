"""The exercises in the order in which they are solved; CONTRIBUTING has what one more costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from smembench.kernels.common.grids import covering
from smembench.model.case import Block
from smembench.studies.solve.exercise import CONFLICTS, LOAD_REQUESTS, SECTORS, SHARED_BYTES, Array, Exercise, Launch

_TILE = Block(32, 32)


def _numbers(random: np.random.Generator, *sides: int) -> Array:
    """Small whole numbers, so that sums in float32 are exact in any order."""
    return random.integers(1, 16, sides).astype(np.float32)


def _matrices(random: np.random.Generator) -> Iterator[Array]:
    yield random.random((64, 96), np.float32)
    yield random.random((45, 70), np.float32)


def _doubled(random: np.random.Generator) -> Sequence[Launch]:
    return [Launch((3, 3), _TILE, [each], 2 * each) for each in _matrices(random)]


def _transposed(random: np.random.Generator) -> Sequence[Launch]:
    return [Launch(covering(each.shape[1], each.shape[0], _TILE), _TILE, [each], each.T) for each in _matrices(random)]


def _neighbours(random: np.random.Generator) -> Sequence[Launch]:
    vectors = [_numbers(random, size) for size in (1000, 1024, 1)]
    return [
        Launch((8, 1), (128, 1), [each], np.convolve(each, np.ones(3, np.float32), "full")[1:-1]) for each in vectors
    ]


def _rows(random: np.random.Generator) -> Sequence[Launch]:
    return [
        Launch((2, 1), (128, 1), [each], each[:, ::-1]) for each in (_numbers(random, 7, 128), _numbers(random, 1, 128))
    ]


def _parts(random: np.random.Generator) -> Sequence[Launch]:
    vectors = [_numbers(random, size) for size in (500, 512, 1)]
    parts = [[each[begin : begin + 128][::-1] for begin in range(0, each.size, 128)] for each in vectors]
    return [Launch((2, 1), (128, 1), [inp], np.concatenate(of_all)) for inp, of_all in zip(vectors, parts, strict=True)]


def _products(random: np.random.Generator) -> Sequence[Launch]:
    found = []
    for m, n, k in ((64, 64, 64), (37, 29, 41)):
        a, b = _numbers(random, m, k), _numbers(random, k, n)
        found.append(Launch(covering(n, m, Block(16, 16)), (16, 16), [a, b], a @ b))
    return found


def _sums(random: np.random.Generator) -> Sequence[Launch]:
    found = []
    for size in (1024, 1000):
        inp = _numbers(random, size)
        sums = np.add.reduceat(inp, range(0, size, 256))
        found.append(Launch((len(sums), 1), (256, 1), [inp], sums))
    return found


EXERCISES = {
    each.name: each
    for each in (
        Exercise(
            "coalescing",
            "double",
            "let the threads of a warp access neighbouring elements",
            "Consecutive threads have consecutive threadIdx.x. Which of row and column should follow it?",
            _doubled,
            {SECTORS: 4},
        ),
        Exercise(
            "bounds",
            "add_neighbours",
            "keep every thread inside the arrays",
            "One `if` for threads without an element; inside it, one for each neighbour that may be missing.",
            _neighbours,
        ),
        Exercise(
            "race",
            "reverse_rows",
            "order stores to and loads from shared memory",
            "Two barriers: no thread may load before all have stored, or store the next row before all have loaded.",
            _rows,
        ),
        Exercise(
            "barrier",
            "reverse_parts",
            "let every thread of a block reach the same barrier",
            "End the `if` before the barrier, and begin another one after it.",
            _parts,
        ),
        Exercise(
            "tiling",
            "multiply",
            "load each element once per block, not once per thread",
            "In each step: store an element to each tile, barrier, add 16 products from the tiles, barrier. Threads "
            "outside c take part in all of it but the last store.",
            _products,
            {LOAD_REQUESTS: 1024, CONFLICTS: 1},
        ),
        Exercise(
            "padding",
            "transpose",
            "remove bank conflicts with an unused column",
            "How many words from one element of a column to the next put them in neighbouring banks?",
            _transposed,
            {CONFLICTS: 1, SECTORS: 4},
        ),
        Exercise(
            "swizzle",
            "transpose",
            "remove bank conflicts without extra memory",
            "XOR with a number from 0 to 31 permutes the numbers from 0 to 31. Store and load must use the same place "
            "for an element.",
            _transposed,
            {CONFLICTS: 1, SHARED_BYTES: 4096, SECTORS: 4},
        ),
        Exercise(
            "reduction",
            "sum_blocks",
            "sum the elements of a block in a tree without conflicts",
            "In the first step, let each thread t < 128 add element t + 128 to element t.",
            _sums,
            {CONFLICTS: 1},
        ),
    )
}
