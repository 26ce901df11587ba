"""Thread t adds element t + apart to element t: neighbouring words."""

from numba import cuda, float32


@cuda.jit
def sum_blocks(out, inp):
    part = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = inp[i] if i < inp.size else float32(0)
    cuda.syncthreads()

    apart = 128
    while apart > 0:
        if t < apart:
            part[t] += part[t + apart]
        cuda.syncthreads()
        apart //= 2

    if t == 0:
        out[cuda.blockIdx.x] = part[0]
