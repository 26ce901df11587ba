"""copyGmem in CUDA C: the documents' kernel."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.transpose.cuda import copy_gmem

_SOURCE = """
extern "C" __global__ void copyGmem(T *out, const T *in, unsigned nx, unsigned ny)
{
    // matrix coordinate (ix, iy)
    unsigned ix = blockIdx.x * BX + threadIdx.x;
    unsigned iy = blockIdx.y * BY + threadIdx.y;

    // copy with boundary test
    if (ix < nx && iy < ny)
        out[iy * nx + ix] = in[iy * nx + ix];
}
"""

KERNEL = port(copy_gmem.KERNEL, _SOURCE)
