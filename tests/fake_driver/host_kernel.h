// A kernel compiled for the host, as the fake driver finds it in a library's table HOST_KERNELS. The last row has no
// name.

#pragma once

struct HostKernel {
    const char *name;     // of the CUDA C kernel
    const char *mangled;  // what only the names of the Numba kernels have that it also stands for
    unsigned block_x, block_y;
    unsigned arrays, scalars;  // what it takes: pointers, then unsigned numbers
    void (*run)(unsigned grid_x, unsigned grid_y, void **arrays, const unsigned *scalars);
    void *constant;  // its __constant__ array, if it has one
    unsigned long constant_bytes;
};
