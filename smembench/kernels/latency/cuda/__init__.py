"""CUDA kernels of the latency problem, in Numba."""
