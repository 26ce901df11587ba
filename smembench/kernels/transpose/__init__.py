"""Kernels of the transpose problem."""
