"""Instructions that Numba has no name for. The only LLVM IR and inline PTX of the package."""
