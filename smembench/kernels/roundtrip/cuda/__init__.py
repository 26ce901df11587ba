"""CUDA kernels of the roundtrip problem, in Numba."""
