"""CPU kernels of the roundtrip problem, through Numba."""
