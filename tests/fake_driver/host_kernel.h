// What the fake driver and the kernels compiled for the host have in common.

#pragma once

// A kernel as the driver finds it in a library's table HOST_KERNELS. The last row has no name.
struct HostKernel {
    const char *name;     // of the CUDA C kernel
    const char *mangled;  // what only the names of the Numba kernels have that it also stands for
    unsigned block_x, block_y;
    unsigned arrays, scalars, maps;  // what it takes: pointers, then unsigned numbers, then tensor maps
    void (*run)(unsigned grid_x, unsigned grid_y, void **arrays_then_maps, const unsigned *scalars);
    void *constant;  // its __constant__ array, if it has one
    unsigned long constant_bytes;
};

// A tensor map of a matrix in rows, as the driver encodes it.
struct HostMap {
    char *address;
    unsigned long long columns, rows, stride_bytes, tile_columns, tile_rows;
};
