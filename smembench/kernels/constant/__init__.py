"""Kernels of the constant problem."""
