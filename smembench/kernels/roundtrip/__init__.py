"""Kernels of the roundtrip problem."""
