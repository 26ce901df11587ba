"""What numba-cuda-mlir is told of this package: the names of its dialect, the rule of integers, and the intrinsics."""
