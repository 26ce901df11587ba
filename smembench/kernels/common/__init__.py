"""Common parts of several problems' kernels."""
