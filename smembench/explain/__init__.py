"""Cost of a kernel's memory accesses, from a trace of the kernel itself, without a GPU."""
