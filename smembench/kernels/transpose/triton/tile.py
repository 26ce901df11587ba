"""transposeSmemPad and transposeVectorized in Triton: load a tile, transpose it, store it.

Between load and store Triton moves the tile through shared memory, in a layout without bank conflicts that it chooses
itself. It makes 128-bit accesses where a thread has neighbouring elements of a row and 16 divides the rows' length:

- transposeSmemPad: a thread has one element, as in the documents.
- transposeVectorized: a tile of 64 × 64 float32 by 256 threads, as Triton's users write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smembench.kernels.common.grids import block_of
from smembench.kernels.common.triton import port
from smembench.kernels.transpose.cuda import transpose_smem_pad, transpose_vectorized
from smembench.kernels.transpose.tile_geometry import vector_side
from smembench.model.case import Case


def source() -> Any:
    """A program transposes a tile of BY rows and BX columns of the input."""
    import triton
    import triton.language as tl

    @triton.jit
    def transpose(out, inp, nx, ny, BX: tl.constexpr, BY: tl.constexpr):  # type: ignore[no-untyped-def]
        ix = tl.program_id(0) * BX + tl.arange(0, BX)
        iy = tl.program_id(1) * BY + tl.arange(0, BY)
        tile = tl.load(inp + iy[:, None] * nx + ix[None, :], mask=(iy[:, None] < ny) & (ix[None, :] < nx))
        tl.store(out + ix[:, None] * ny + iy[None, :], tl.trans(tile), mask=(ix[:, None] < nx) & (iy[None, :] < ny))

    return transpose


def _block(case: Case) -> Mapping[str, int]:
    bx, by = block_of(case)
    return {"BX": bx, "BY": by}


def _square(case: Case) -> Mapping[str, int]:
    return {"BX": vector_side(case), "BY": vector_side(case)}


KERNELS = (port(transpose_smem_pad.KERNEL, source, _block), port(transpose_vectorized.KERNEL, source, _square))
