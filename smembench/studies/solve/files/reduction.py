"""Reduction: sum the elements of a block in a tree without bank conflicts.

Each step adds pairs of numbers, and half as many threads take part as in the
step before. Here the pairs are neighbours at first, then 2 apart, 4 apart and
so on: neighbouring threads access words 2, 4, ... 32 apart, which share banks.

Choose other pairs, so that neighbouring threads access neighbouring words.
out[b] is the sum of the 256 elements of block b.

Grade it with: smembench lesson solve reduction
"""

from numba import cuda, float32


@cuda.jit
def sum_blocks(out, inp):
    part = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = inp[i] if i < inp.size else float32(0)
    cuda.syncthreads()

    apart = 1
    while apart < 256:
        first = 2 * apart * t
        if first < 256:
            part[first] += part[first + apart]
        cuda.syncthreads()
        apart *= 2

    if t == 0:
        out[cuda.blockIdx.x] = part[0]
