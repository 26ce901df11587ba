"""Kernels of the matmul problem."""
