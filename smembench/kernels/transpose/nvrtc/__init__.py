"""CUDA C ports of the transpose kernels."""
