"""CUDA kernels of the reduction problem, in Numba."""
