"""transposeVectorized in CUDA C: 128-bit accesses of global memory, whole vectors swizzled in the tile."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.intrinsics.vector import vector_width
from smembench.kernels.kernel import Kernel
from smembench.kernels.transpose.cuda import transpose_vectorized
from smembench.kernels.transpose.tile_geometry import ACROSS, WARP_ROWS, vector_side, vectors_align, vectors_fit
from smembench.model.case import Case

_TYPES = """
struct Position { unsigned x, y; };

union alignas(16) Vector { T lane[WIDE]; uint4 words; };
"""

_IN_LINES = """
__device__ Position tile_of_block()
{
    return {blockIdx.x, blockIdx.y};
}

__device__ Position vector_of_thread()
{
    unsigned thread = threadIdx.y * BX + threadIdx.x, warp = thread / 32;
    return {thread % ACROSS + warp % (BX / ACROSS) * ACROSS,
            thread / ACROSS % WARP_ROWS + warp / (BX / ACROSS) * WARP_ROWS};
}

__device__ Vector load(const T *from)
{
    return *(const Vector *)from;
}

__device__ void store(T *to, Vector vector)
{
    *(Vector *)to = vector;
}
"""

_TRANSPOSE = """
extern "C" __global__ void NAME(T *out, const T *in, unsigned nx, unsigned ny)
{
    alignas(16) __shared__ T tile[SIDE * SIDE];

    unsigned x0 = tile_of_block().x * SIDE, y0 = tile_of_block().y * SIDE;
    unsigned vector = vector_of_thread().x, top = vector_of_thread().y;

    unsigned ix = x0 + vector * WIDE;
    for (unsigned first = 0; first < SIDE; first += BY) {
        unsigned row = top + first;
        unsigned place = vector ^ (row / WIDE % ACROSS);
        if (ix < nx && y0 + row < ny)
            *(Vector *)&tile[row * SIDE + place * WIDE] = load(&in[(y0 + row) * nx + ix]);
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
            store(&out[(x0 + row) * ny + ox], packed);
        }
    }
}
"""


def vectorized(kernel: Kernel, functions: str) -> Kernel:
    """The CUDA C port of a kernel that transposes by vectors, for rows of whole vectors.

    Args:
        kernel: the Numba kernel.
        functions: CUDA C of ``tile_of_block()`` and ``vector_of_thread()``, across and down, and of ``load(from)`` and
            ``store(to, vector)`` for global memory.
    """
    return port(kernel, _TYPES + functions + _TRANSPOSE.replace("NAME", kernel.name), _constants, _unsupported)


def _constants(case: Case) -> dict[str, int]:
    side, wide = vector_side(case), vector_width(case.dtype)
    return {"SIDE": side, "WIDE": wide, "ACROSS": ACROSS, "WARP_ROWS": WARP_ROWS}


def _unsupported(case: Case) -> str | None:
    if not vectors_align(case):
        sides = f"sides that are multiples of {vector_width(case.dtype)}"
        return f"the CUDA C port of {case.kernel} takes whole vectors only: {sides}"
    return vectors_fit(case)


KERNEL = vectorized(transpose_vectorized.KERNEL, _IN_LINES)
