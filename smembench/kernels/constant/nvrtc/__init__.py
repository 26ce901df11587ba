"""CUDA C ports of the constant kernels."""
