"""CUDA C twins of the constant kernels."""
