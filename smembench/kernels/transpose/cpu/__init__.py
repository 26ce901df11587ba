"""CPU kernels of the transpose problem, through Numba."""
