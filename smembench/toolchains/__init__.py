"""Compilers of kernels, one file per toolchain, and what their machine code tells."""
