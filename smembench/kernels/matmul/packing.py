"""Packing: matrices whose rows the Tensor Memory Accelerator (TMA) cannot copy are copied into rows that it can.

All warps of a grid share the pieces of a matrix, 128 bytes of some rows each. A warp loads a piece element by element
and stores it in shared memory; from there the TMA writes it into the copy, leaving out what is beyond the matrix.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, place_in_tile
from smembench.kernels.intrinsics.bulk_store import (
    commit_stores,
    complete_stores,
    finish_stores,
    publish_tile,
    start_store,
)
from smembench.kernels.matmul.tile_choice import ALIGNED_BYTES
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32
from smembench.kernels.program import TensorMap
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE

PER_LANE = 32
"""Elements of a piece per lane."""


def height(dtype: str) -> int:
    """Rows of a piece."""
    return PER_LANE * WARP * ITEMSIZE[dtype] // ROW_BYTES


def packing(dtype: str, threads: int) -> DeviceFunction:
    """``(shared, From, copy_map)``: copy a matrix into that of a tensor map, in blocks of ``threads`` threads."""
    itemsize, element = ITEMSIZE[dtype], number(dtype)
    width, place_of = ROW_BYTES // itemsize, place_in_tile(itemsize)
    rows = height(dtype)
    warps = threads // WARP

    def pack(shared: Array, From: Matrix, copy_map: Index) -> None:
        staged = cuda.local.array(PER_LANE, element)
        warp, lane = cuda.threadIdx.x // WARP, cuda.threadIdx.x % WARP
        at = warp * (rows * width)
        across, down = (From.columns + (width - 1)) // width, (From.rows + (rows - 1)) // rows
        piece = cuda.blockIdx.x * warps + warp
        while piece < down * across:
            corner = Place(piece // across * rows, piece % across * width)
            for i in range(PER_LANE):
                row, col = corner.row + uint32(i * WARP // width), corner.col + uint32(i * WARP % width) + lane
                if row < From.rows and col < From.columns:
                    staged[i] = From.elements[row * From.stride + col]
            if lane == 0:
                finish_stores(0)
            cuda.syncwarp()
            for i in range(PER_LANE):
                shared[at + place_of(uint32(i * WARP // width), uint32(i * WARP % width) + lane)] = staged[i]
            publish_tile()
            cuda.syncwarp()
            if lane == 0:
                start_store(copy_map, corner.col, corner.row, shared, at)
                commit_stores()
            piece += cuda.gridDim.x * warps
        if lane == 0:
            complete_stores()

    return device(pack)


def copied(described: TensorMap, itemsize: int) -> TensorMap:
    """The same tensor map, or that of a copy with rows of whole 128 bytes if the TMA does not take the array's."""
    if described.stride * itemsize % ALIGNED_BYTES == 0:
        return described
    width = ROW_BYTES // itemsize
    return described._replace(stride=-(-described.columns // width) * width, copied=True)
