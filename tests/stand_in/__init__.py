"""A stand-in for the NVIDIA driver, and what makes a GPU's kernels run on the host."""
