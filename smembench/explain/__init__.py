"""Explanation of kernels from a trace of the kernels themselves, without a GPU."""
