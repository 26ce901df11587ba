"""CPU kernels of the reduction problem, through Numba."""
