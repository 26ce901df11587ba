"""CPU kernels of the constant problem, through Numba."""
