"""transposeSmem with a mistake each, as files of a user's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.cuda import transpose_smem
from smembench.model.case import Case

SIDE, FLOAT = 32, number("float32")
"""Of a block, and the type of its elements."""


def beyond_the_tile(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    tile = cuda.shared.array((SIDE, SIDE), FLOAT)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile[ty + 24, tx] = inp[ty * nx + tx]
    cuda.syncthreads()
    out[tx * ny + ty] = tile[ty + 24, tx]


def beyond_the_input(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x = cuda.blockIdx.x * SIDE + tx
    y = cuda.blockIdx.y * SIDE + ty
    out[(nx - 1) * ny] = inp[y * nx + x]  # no boundary test


def unordered_lanes(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    tile = cuda.shared.array((SIDE, SIDE), FLOAT)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile[ty, tx] = inp[0]
    out[0] = tile[ty, tx ^ 1]  # of the same warp, and no syncwarp


def ordered_lanes(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    tile = cuda.shared.array((SIDE, SIDE), FLOAT)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile[ty, tx] = inp[0]
    cuda.syncwarp()
    out[0] = tile[ty, tx ^ 1]


def half_a_barrier(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    tile = cuda.shared.array((SIDE, SIDE), FLOAT)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    tile[ty, tx] = inp[0]
    if ty < 3:
        cuda.syncthreads()
    out[0] = tile[ty, tx]


def never_stored(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    tile = cuda.shared.array((SIDE, SIDE), FLOAT)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if tx < 30:
        tile[ty, tx] = inp[0]
    cuda.syncthreads()
    out[0] = tile[ty, tx]


def stored_again(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    tile = cuda.shared.array((SIDE, SIDE), FLOAT)
    tile[0, 0] = inp[0]  # the same by all threads
    cuda.syncthreads()
    out[0] = tile[0, 0]


def added_to(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    tile = cuda.shared.array((SIDE, SIDE), FLOAT)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if tx == 0:
        tile[ty, 0] = inp[0]
    if tx == 31:
        tile[ty, 0] = inp[1]  # another line
    cuda.syncthreads()
    out[0] = tile[ty, 0]


def _kernel(function: Callable[..., None]) -> Any:
    def build(case: Case) -> NumbaKernel:
        block = block_of(case)
        return NumbaKernel(function, grid=covering(case.n, case.m, block), block=block)

    return replace(transpose_smem.KERNEL, name=function.__name__, build=build, ladder="", unsupported=lambda case: None)


KERNELS = tuple(
    map(
        _kernel,
        (
            beyond_the_tile,
            beyond_the_input,
            unordered_lanes,
            ordered_lanes,
            half_a_barrier,
            never_stored,
            stored_again,
            added_to,
        ),
    )
)
