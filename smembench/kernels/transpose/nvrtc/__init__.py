"""CUDA C twins of the transpose kernels."""
