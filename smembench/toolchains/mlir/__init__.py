"""This package's additions to numba-cuda-mlir: the names of its dialect, the rule of integers, the intrinsics."""
