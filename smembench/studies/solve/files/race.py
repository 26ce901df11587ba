"""Race: a thread reads from shared memory what another thread has written.

Warps run in any order. Only cuda.syncthreads() makes the threads of a block
wait for each other: every access before it is complete before any access after
it begins.

Each block reverses rows of 128 elements, one after the other, in one array in
shared memory. Who has to wait for whom? Think about one row first, then about
the next one.

Grade it with: smembench lesson solve race
"""

from numba import cuda, float32


@cuda.jit
def reverse_rows(out, inp):
    row = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    for y in range(cuda.blockIdx.x, inp.shape[0], cuda.gridDim.x):
        row[t] = inp[y, t]
        out[y, t] = row[127 - t]
