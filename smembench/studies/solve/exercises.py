"""The exercises in the order in which they are solved; CONTRIBUTING has what one more costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smembench.kernels.common.grids import covering
from smembench.model.case import Block
from smembench.studies.solve.exercise import (
    CONFLICTS,
    LOAD_REQUESTS,
    SECTORS,
    SHARED_BYTES,
    WAVEFRONTS,
    Array,
    Exercise,
    Launch,
)

_TILE, _SMALL = Block(32, 32), Block(16, 16)


def _numbers(random: np.random.Generator, *sides: int) -> Array:
    """Small whole numbers, so that sums in float32 are exact in any order."""
    return random.integers(1, 16, sides).astype(np.float32)


def _matrices(random: np.random.Generator) -> Sequence[Array]:
    return random.random((64, 96), np.float32), random.random((45, 70), np.float32)


def _doubled(random: np.random.Generator) -> Sequence[Launch]:
    return [Launch((3, 3), _TILE, [matrix], 2 * matrix) for matrix in _matrices(random)]


def _transposed(random: np.random.Generator) -> Sequence[Launch]:
    return [
        Launch(covering(matrix.shape[1], matrix.shape[0], _TILE), _TILE, [matrix], matrix.T)
        for matrix in _matrices(random)
    ]


def _neighbours(random: np.random.Generator) -> Sequence[Launch]:
    vectors = (_numbers(random, size) for size in (1000, 1024, 1))
    three = np.ones(3, np.float32)
    return [Launch((8, 1), (128, 1), [vector], np.convolve(vector, three)[1:-1]) for vector in vectors]


def _rows(random: np.random.Generator) -> Sequence[Launch]:
    matrices = (_numbers(random, rows, 128) for rows in (7, 1))
    return [Launch((2, 1), (128, 1), [matrix], matrix[:, ::-1]) for matrix in matrices]


def _parts(random: np.random.Generator) -> Sequence[Launch]:
    vectors = (_numbers(random, size) for size in (500, 512, 1))
    return [Launch((2, 1), (128, 1), [vector], _reversed_parts(vector)) for vector in vectors]


def _reversed_parts(vector: Array) -> Array:
    return np.concatenate([vector[begin : begin + 128][::-1] for begin in range(0, vector.size, 128)])


def _products(random: np.random.Generator) -> Sequence[Launch]:
    sizes = (64, 64, 64), (37, 29, 41)
    factors = ((_numbers(random, m, k), _numbers(random, k, n)) for m, n, k in sizes)
    return [Launch(covering(b.shape[1], len(a), _SMALL), _SMALL, [a, b], a @ b) for a, b in factors]


def _sums(random: np.random.Generator) -> Sequence[Launch]:
    vectors = (_numbers(random, size) for size in (1024, 1000))
    return [
        Launch((4, 1), (256, 1), [vector], np.add.reduceat(vector, range(0, vector.size, 256))) for vector in vectors
    ]


EXERCISES = {
    exercise.name: exercise
    for exercise in (
        Exercise(
            "coalescing", "double", "let the threads of a warp access neighbouring elements", _doubled, {SECTORS: 4}
        ).hinted("Consecutive threads have consecutive threadIdx.x. Which of row and column should follow it?"),
        Exercise("bounds", "add_neighbours", "keep every thread inside the arrays", _neighbours).hinted(
            "One `if` for threads without an element; inside it, one for each neighbour that may be missing."
        ),
        Exercise("race", "reverse_rows", "order stores to and loads from shared memory", _rows).hinted(
            "Two barriers: no thread may load before all have stored, or store the next row before all have loaded."
        ),
        Exercise("barrier", "reverse_parts", "let every thread of a block reach the same barrier", _parts).hinted(
            "End the `if` before the barrier, and begin another one after it."
        ),
        Exercise(
            "tiling",
            "multiply",
            "load each element once per block, not once per thread",
            _products,
            {LOAD_REQUESTS: 1024, CONFLICTS: 1},
        ).hinted(
            "In each step: store an element to each tile, barrier, add 16 products from the tiles, barrier. "
            "Threads outside c take part in all of it but the last store."
        ),
        Exercise(
            "padding",
            "transpose",
            "remove bank conflicts with an unused column",
            _transposed,
            {CONFLICTS: 1, SECTORS: 4},
        ).hinted("How many words from one element of a column to the next put them in neighbouring banks?"),
        Exercise(
            "swizzle",
            "transpose",
            "remove bank conflicts without extra memory",
            _transposed,
            {CONFLICTS: 1, SHARED_BYTES: 4096, SECTORS: 4},
        ).hinted(
            "XOR with a number from 0 to 31 permutes the numbers from 0 to 31. Store and load must use the "
            "same place for an element."
        ),
        Exercise(
            "reduction",
            "sum_blocks",
            "sum the elements of a block in a tree without conflicts",
            _sums,
            {CONFLICTS: 1, WAVEFRONTS: 200, LOAD_REQUESTS: 32},
        ).hinted("In the first step, let each thread t < 128 add element t + 128 to element t."),
    )
}
