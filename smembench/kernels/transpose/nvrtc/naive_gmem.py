"""naiveGmem in CUDA C: the documents' kernel."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.transpose.cuda import naive_gmem

_SOURCE = """
extern "C" __global__ void naiveGmem(T *out, const T *in, unsigned nx, unsigned ny)
{
    // matrix coordinate (ix, iy)
    unsigned ix = blockIdx.x * BX + threadIdx.x;
    unsigned iy = blockIdx.y * BY + threadIdx.y;

    // transpose with boundary test
    if (ix < nx && iy < ny)
        out[ix * ny + iy] = in[iy * nx + ix];
}
"""

KERNEL = port(naive_gmem.KERNEL, _SOURCE)
