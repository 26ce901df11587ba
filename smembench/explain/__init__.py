"""What a kernel's memory accesses cost, from a trace of the kernel itself, without a GPU."""
