"""Threads without an element do nothing; each neighbour is added only if it exists."""

from numba import cuda


@cuda.jit
def add_neighbours(out, inp):
    i = cuda.grid(1)
    if i < inp.size:
        total = inp[i]
        if i > 0:
            total += inp[i - 1]
        if i < inp.size - 1:
            total += inp[i + 1]
        out[i] = total
