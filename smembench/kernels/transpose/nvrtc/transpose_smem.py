"""transposeSmem in CUDA C: the documents' kernel with each side tested in its own coordinates."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.transpose.cuda import transpose_smem

TILE = """
extern "C" __global__ void NAME(T *out, const T *in, unsigned nx, unsigned ny)
{
    __shared__ T tile[BY][BX + PAD];

    unsigned x0 = blockIdx.x * BX, y0 = blockIdx.y * BY;
    unsigned ix = x0 + threadIdx.x, iy = y0 + threadIdx.y;
    if (ix < nx && iy < ny)
        tile[threadIdx.y][threadIdx.x] = in[iy * nx + ix];
    __syncthreads();

    unsigned bidx = threadIdx.y * BX + threadIdx.x;
    unsigned irow = bidx / BY, icol = bidx % BY;
    unsigned ox = y0 + icol, oy = x0 + irow;
    if (ox < ny && oy < nx)
        out[oy * ny + ox] = tile[icol][irow];
}
"""
"""The kernel, to be given a name; padded where ``PAD`` is not 0."""

KERNEL = port(transpose_smem.KERNEL, TILE.replace("NAME", transpose_smem.KERNEL.name))
