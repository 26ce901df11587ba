"""transposeVectorized in CUDA C: 128-bit accesses of global memory, whole vectors swizzled in the tile."""

from __future__ import annotations

from smembench.case import Case
from smembench.kernels.cuda_c import twin
from smembench.kernels.transpose.cuda import transpose_vectorized
from smembench.kernels.transpose.tiles import ACROSS, WARP_ROWS, vector_side, vectors_fit
from smembench.kernels.vector import lanes

_SOURCE = """
struct alignas(16) Vector { T lane[WIDE]; };

extern "C" __global__ void transposeVectorized(T *out, const T *in, unsigned nx, unsigned ny)
{
    alignas(16) __shared__ T tile[SIDE * SIDE];

    unsigned x0 = blockIdx.x * SIDE, y0 = blockIdx.y * SIDE;
    unsigned thread = threadIdx.y * BX + threadIdx.x, warp = thread / 32;
    unsigned vector = thread % ACROSS + warp % (BX / ACROSS) * ACROSS;
    unsigned top = thread / ACROSS % WARP_ROWS + warp / (BX / ACROSS) * WARP_ROWS;

    unsigned ix = x0 + vector * WIDE;
    for (unsigned first = 0; first < SIDE; first += BY) {
        unsigned row = top + first;
        unsigned place = vector ^ (row / WIDE % ACROSS);
        if (ix < nx && y0 + row < ny)
            *(Vector *)&tile[row * SIDE + place * WIDE] = *(const Vector *)&in[(y0 + row) * nx + ix];
    }
    __syncthreads();

    unsigned ox = y0 + vector * WIDE;
    for (unsigned first = 0; first < SIDE; first += BY) {
        unsigned row = top + first;
        unsigned place = row / WIDE ^ (vector % ACROSS);
        if (ox < ny && x0 + row < nx) {
            Vector packed;
            for (unsigned i = 0; i < WIDE; ++i)
                packed.lane[i] = tile[(vector * WIDE + i) * SIDE + place * WIDE + row % WIDE];
            *(Vector *)&out[(x0 + row) * ny + ox] = packed;
        }
    }
}
"""


def _constants(case: Case) -> dict[str, int]:
    side, wide = vector_side(case), lanes(case.dtype)
    return {"SIDE": side, "WIDE": wide, "ACROSS": ACROSS, "WARP_ROWS": WARP_ROWS}


def _refuse(case: Case) -> str | None:
    wide = lanes(case.dtype)
    if case.n % wide or case.m % wide:
        return f"the twin of {case.kernel} takes whole vectors only: sides that are multiples of {wide}"
    return vectors_fit(case)


KERNEL = twin(transpose_vectorized.KERNEL, _SOURCE, _constants, _refuse)
