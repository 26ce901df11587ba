"""CUDA C twins of the matrix multiplication kernels."""
