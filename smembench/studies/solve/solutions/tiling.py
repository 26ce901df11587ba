"""Each thread loads 2 elements per 16 products instead of 32. One barrier is
between the stores to the tiles and the loads, one before the next tiles.
"""

from numba import cuda, float32


@cuda.jit
def multiply(c, a, b):
    a_tile = cuda.shared.array((16, 16), float32)
    b_tile = cuda.shared.array((16, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = float32(0)
    for begin in range(0, a.shape[1], 16):
        inside = row < a.shape[0] and begin + tx < a.shape[1]
        a_tile[ty, tx] = a[row, begin + tx] if inside else 0
        inside = begin + ty < b.shape[0] and column < b.shape[1]
        b_tile[ty, tx] = b[begin + ty, column] if inside else 0
        cuda.syncthreads()
        for k in range(16):
            total += a_tile[ty, k] * b_tile[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total
