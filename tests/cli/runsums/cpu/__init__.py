"""Its kernels on the CPU."""
