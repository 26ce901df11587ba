"""CUDA C ports of the reduction kernels."""
