"""The documents' transposes by numba-cuda-mlir."""
