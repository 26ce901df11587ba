"""Compilers of kernels, one file per toolchain, and readers of their machine code."""
