"""transposeSmem with and without its barrier: a warp reads columns of the tile that other warps write.

Without it there is a race: the result depends on which warp comes first. A block of one warp gives right results
as long as its lanes run in step, which nothing promises since Volta.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from smembench.kernels.common.grids import covering
from smembench.kernels.numba_cuda import SIMULATED, cuda, number
from smembench.kernels.types import Array, Index
from smembench.model.case import Block
from smembench.studies.lesson.experiment import Experiment, Lesson, Observation, launcher

_SIDE = 32 if SIMULATED else 1024
_MANY, _ONE = Block(32, 32), Block(8, 4)
"""Blocks of 32 warps and of one."""


def build(block: Block, *, barrier: bool, of_warp: bool = False) -> Callable[..., None]:
    """The kernel, for ``(out, inp, nx, ny)``, with the barrier, or a warp's, or without one."""
    bx, by = block
    dtype = number("float32")

    def transpose_smem(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        # static shared memory
        tile = cuda.shared.array((by, bx), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y

        # coordinate in original matrix
        ix = cuda.blockIdx.x * bx + tx
        iy = cuda.blockIdx.y * by + ty
        inside = ix < nx and iy < ny

        # linear global memory index for original matrix
        ti = iy * nx + ix

        # thread index in transposed block
        bidx = ty * bx + tx
        irow = bidx // by
        icol = bidx % by

        # coordinate in transposed matrix
        ix = cuda.blockIdx.y * by + icol
        iy = cuda.blockIdx.x * bx + irow

        # linear global memory index for transposed matrix
        to = iy * ny + ix

        # load data from global memory to shared memory
        if inside:
            tile[ty, tx] = inp[ti]

        # thread synchronization
        if barrier:
            cuda.syncthreads()
        elif of_warp:
            cuda.syncwarp()

        # store data to global memory from shared memory
        if ix < ny and iy < nx:
            out[to] = tile[icol, irow]

    return transpose_smem


def _experiment(
    what: str, block: Block, *, right: bool, barrier: bool = False, of_warp: bool = False, **more: Any
) -> Experiment:
    """Count runs with a wrong transpose. Each has other numbers, or leftovers of the last would pass for results."""

    def run(runs: int) -> Observation:
        launch = launcher(build(block, barrier=barrier, of_warp=of_warp), covering(_SIDE, _SIDE, block), block)
        wrong = 0
        for run in range(runs):
            inp = np.random.default_rng(run).random((_SIDE, _SIDE), np.float32)
            out = np.full(inp.size, np.nan, np.float32)
            launch(out, inp.ravel(), np.uint32(_SIDE), np.uint32(_SIDE))
            wrong += not np.array_equal(out.reshape(inp.shape), inp.T)
        return Observation(f"wrong in {wrong} of {runs} runs", (wrong == 0) == right)

    return Experiment(f"blocks of {block}, {what}", "never wrong" if right else "wrong at times", run, **more)


LESSON = Lesson(
    document="slides, transposeSmem and __syncthreads",
    experiments=(
        _experiment("with the barrier", _MANY, barrier=True, right=True),
        _experiment(
            "without it",
            _MANY,
            right=False,
            unless="whether a warp comes too early is a matter of timing: a right result proves nothing",
        ),
        _experiment(
            "one warp, without it",
            _ONE,
            right=True,
            needs="gpu",
            unless="the lanes of a warp usually run in step, but since Volta only __syncwarp promises it",
        ),
        _experiment("one warp, with __syncwarp", _ONE, of_warp=True, right=True, needs="gpu"),
    ),
    why=(
        "Without the barrier a warp may read a part of the tile that another warp has not written yet; only the "
        "barrier makes the transpose right every time."
    ),
    check="each run transposes other numbers into an output of NaN, which is compared bit for bit",
)
