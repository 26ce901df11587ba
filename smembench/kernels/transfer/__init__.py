"""Kernels of the transfer problem."""
