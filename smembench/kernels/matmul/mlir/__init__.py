"""The documents' matrix products by numba-cuda-mlir."""
