"""Tiling: load each element once per block instead of once per thread.

Each of the 16 x 16 threads of a block loads a row of a and a column of b, so
every element is loaded 16 times. Walk along k in steps of 16 instead. In each
step the block copies a 16 x 16 tile of a and one of b to shared memory, one
element of each per thread, and all threads compute from the tiles. Tiles may
reach beyond the edges, where elements count as 0. Each step needs two barriers.

a is m x k, b is k x n, c is m x n.

Grade it with: smembench lesson solve tiling
"""

from numba import cuda, float32


@cuda.jit
def multiply(c, a, b):
    column, row = cuda.grid(2)
    total = float32(0)
    if row < c.shape[0] and column < c.shape[1]:
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total
