"""CPU kernels of the latency problem."""
