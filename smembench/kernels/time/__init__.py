"""Kernels of the user's: `smembench time`."""
