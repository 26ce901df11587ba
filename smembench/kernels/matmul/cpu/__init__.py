"""CPU kernels of the matmul problem, through Numba."""
