"""CUDA C ports of the kernels of matrix products."""
