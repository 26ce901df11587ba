"""The slides' transposeSmem, statement by statement: right for square matrices of whole blocks, and for no others.

Its boundary test comes after ``ix`` and ``iy`` have become the coordinates of the output, an nx × ny matrix, and still
compares them with nx and ny, the bounds of the input. The loads and the barrier are inside it. So

- whole blocks beyond the smaller side write nothing;
- at the edges a thread loads only if its *output* is inside: elements of the tile stay unwritten, others come from the
  next row of the input or from beyond its end;
- blocks in which some threads fail the test have a divergent barrier.

``kernels/transpose/cuda/transpose_smem.py`` tests each side in its own coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from smembench.kernels.common.grids import covering
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.types import Array, Index
from smembench.model.case import Block
from smembench.studies.lesson import barrier
from smembench.studies.lesson.experiment import Experiment, Lesson, Observation, launcher

_BLOCK = Block(16, 16)
_SIZES = ((64, 64), (64, 32), (100, 100))
"""nx columns, ny rows."""


def build() -> Callable[..., None]:
    """The kernel as written, for ``(out, inp, nx, ny)``."""
    bdimx, bdimy = _BLOCK
    dtype = number("float32")

    def as_written(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        # static shared memory
        tile = cuda.shared.array((bdimy, bdimx), dtype)

        # coordinate in original matrix
        ix = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        iy = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y

        # linear global memory index for original matrix
        ti = iy * nx + ix

        # thread index in transposed block
        bidx = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
        irow = bidx // cuda.blockDim.y
        icol = bidx % cuda.blockDim.y

        # coordinate in transposed matrix
        ix = cuda.blockIdx.y * cuda.blockDim.y + icol
        iy = cuda.blockIdx.x * cuda.blockDim.x + irow

        # linear global memory index for transposed matrix
        to = iy * ny + ix

        # transpose with boundary test
        if ix < nx and iy < ny:
            # load data from global memory to shared memory
            tile[cuda.threadIdx.y, cuda.threadIdx.x] = inp[ti]

            # thread synchronization
            cuda.syncthreads()

            # store data to global memory from shared memory
            out[to] = tile[icol, irow]

    return as_written


@dataclass(frozen=True, slots=True)
class Predicted:
    """Predicted effects of the listing on a matrix.

    Attributes:
        wrong: elements of the output.
        divergent: blocks in which some threads reach the barrier and some do not.
        beyond: loads beyond the end of the input.
    """

    wrong: int
    divergent: int
    beyond: int


def predicted(nx: int, ny: int) -> Predicted:
    """Follow each thread of each block through the listing, with places in the input instead of its elements.

    Raises:
        IndexError: for sizes at which it writes beyond the output.
    """
    nowhere = -1
    (bx, by), (blocks_x, blocks_y) = _BLOCK, covering(nx, ny, _BLOCK)
    out = np.full(nx * ny, nowhere)
    ty, tx = np.divmod(np.arange(bx * by), bx)
    irow, icol = np.divmod(np.arange(bx * by), by)
    divergent = beyond = 0
    for block_y, block_x in np.ndindex(blocks_y, blocks_x):
        ti = (block_y * by + ty) * nx + block_x * bx + tx
        ix, iy = block_y * by + icol, block_x * bx + irow
        inside = (ix < nx) & (iy < ny)
        tile = np.full((by, bx), nowhere)
        tile[ty[inside], tx[inside]] = ti[inside]
        out[(iy * ny + ix)[inside]] = tile[icol, irow][inside]
        divergent += bool(inside.any() and not inside.all())
        beyond += int(np.count_nonzero(ti[inside] >= nx * ny))
    right = np.arange(nx * ny).reshape(ny, nx).T.ravel()
    return Predicted(int(np.count_nonzero(out != right)), divergent, beyond)


def _experiment(what: str, kernel: Callable[..., None], nx: int, ny: int, wrong: int) -> Experiment:
    """The wrong elements of a launch; behind the input there are numbers that it does not have."""

    def run(runs: int) -> Observation:
        grid, count = covering(nx, ny, _BLOCK), nx * ny
        inp = np.full(grid[1] * _BLOCK.y * nx + grid[0] * _BLOCK.x, -1, np.float32)
        inp[:count] = np.arange(count)
        out = np.full(count, np.nan, np.float32)
        launch = launcher(kernel, grid, _BLOCK)
        launch(out, inp, np.uint32(nx), np.uint32(ny))
        errors = int(np.count_nonzero(out.reshape(nx, ny) != inp[:count].reshape(ny, nx).T))
        return Observation(f"{errors} of {count} wrong", errors == wrong)

    return Experiment(f"{nx}×{ny}, {what}", f"{wrong} of {nx * ny} wrong", run)


def _as_written(nx: int, ny: int) -> Experiment:
    counts, (blocks_x, blocks_y) = predicted(nx, ny), covering(nx, ny, _BLOCK)
    diverge = f", a divergent barrier in {counts.divergent} of {blocks_x * blocks_y} blocks" if counts.divergent else ""
    beyond = f", {counts.beyond} loads beyond the input" if counts.beyond else ""
    return _experiment(f"as written{diverge}{beyond}", build(), nx, ny, counts.wrong)


LESSON = Lesson(
    document=f"slides, transposeSmem, in blocks of {_BLOCK}",
    experiments=(
        *(_as_written(*size) for size in _SIZES),
        _experiment("each side tested in its own coordinates", barrier.build(_BLOCK, barrier=True), 40, 24, wrong=0),
    ),
    why=(
        "The listing compares the output's coordinates with the input's bounds, and loads only behind that test: "
        "blocks beyond the smaller side write nothing, and tiles at the edges are filled in part. With a test for each "
        "side and the barrier outside both, as transposeSmem has them here, any nx × ny is right."
    ),
    check="wrong elements of an output of NaN are counted, and expected are those of a calculation thread by thread",
)
