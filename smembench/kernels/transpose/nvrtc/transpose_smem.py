"""transposeSmem in CUDA C: the documents' kernel with each side tested in its own coordinates."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.transpose.cuda import transpose_smem

TILE = """
extern "C" __global__ void NAME(T *out, const T *in, unsigned nx, unsigned ny)
{
    // static shared memory
    __shared__ T tile[BY][BX + PAD];

    // coordinate in original matrix
    unsigned ix = blockIdx.x * BX + threadIdx.x;
    unsigned iy = blockIdx.y * BY + threadIdx.y;
    bool inside = ix < nx && iy < ny;

    // linear global memory index for original matrix
    unsigned ti = iy * nx + ix;

    // thread index in transposed block
    unsigned bidx = threadIdx.y * BX + threadIdx.x;
    unsigned irow = bidx / BY;
    unsigned icol = bidx % BY;

    // coordinate in transposed matrix
    ix = blockIdx.y * BY + icol;
    iy = blockIdx.x * BX + irow;

    // linear global memory index for transposed matrix
    unsigned to = iy * ny + ix;

    // load data from global memory to shared memory, with boundary test
    if (inside)
        tile[threadIdx.y][threadIdx.x] = in[ti];

    // thread synchronization
    __syncthreads();

    // store data to global memory from shared memory, with boundary test
    if (ix < ny && iy < nx)
        out[to] = tile[icol][irow];
}
"""
"""The kernel, to be given a name; padded where ``PAD`` is not 0."""

KERNEL = port(transpose_smem.KERNEL, TILE.replace("NAME", transpose_smem.KERNEL.name))
