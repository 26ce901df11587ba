"""In rows of 33 floats element (r, c) is in bank (r + c) % 32."""

from numba import cuda, float32


@cuda.jit
def transpose(out, inp):
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y

    x, y = 32 * cuda.blockIdx.x + tx, 32 * cuda.blockIdx.y + ty
    if y < inp.shape[0] and x < inp.shape[1]:
        tile[ty, tx] = inp[y, x]

    cuda.syncthreads()

    x, y = 32 * cuda.blockIdx.y + tx, 32 * cuda.blockIdx.x + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty]
