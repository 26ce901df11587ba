"""CUDA C ports of the matrix multiplication kernels."""
