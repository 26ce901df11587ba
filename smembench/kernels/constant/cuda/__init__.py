"""CUDA kernels of the constant problem, in Numba."""
