"""Bounds: a grid consists of whole blocks, but arrays rarely do.

1000 elements take 8 blocks of 128 threads, and the last 24 threads have no
element. They read and overwrite whatever is behind the arrays. At the other
end, index -1 is the last element in Numba, as in Python: no error, but a wrong
sum.

out[i] is the sum of inp[i] and its two neighbours; a missing neighbour counts
as 0. Keep every thread inside the arrays.

Grade it with: smembench lesson solve bounds
"""

from numba import cuda


@cuda.jit
def add_neighbours(out, inp):
    i = cuda.grid(1)
    out[i] = inp[i - 1] + inp[i] + inp[i + 1]
