"""CUDA C of the requests: kernels of one warp, each with one access of the memory whose counter is read.

The lanes' addresses come from constant memory, and results go to global memory, so neither adds to the counter.
"""

from __future__ import annotations

AT_ONCE = 1000
"""Requests whose addresses the constant memory holds."""

SPAN_BYTES = 32 * 1024
"""Shared memory of a launch, and the length of the buffer's first part, which requests address; results follow it."""

BUFFER_BYTES = SPAN_BYTES + 32 * 16

SOURCE = r"""
constexpr int SPAN = 32 * 1024;
constexpr int AT_ONCE = 1000;

// Of each request a byte address per lane, of shared memory or of the buffer; negative if the lane is inactive.
__constant__ short addresses[AT_ONCE][32];

extern __shared__ __align__(128) unsigned char memory[];

template <int BYTES> struct Element;
template <> struct Element<1> { using type = unsigned char; };
template <> struct Element<2> { using type = unsigned short; };
template <> struct Element<4> { using type = unsigned; };
template <> struct Element<8> { using type = uint2; };
template <> struct Element<16> { using type = uint4; };

template <int BYTES>
__device__ auto &at(unsigned char *bytes)
{
    return *(typename Element<BYTES>::type *)bytes;
}

// Where a lane's result goes.
template <int BYTES>
__device__ auto &result(unsigned char *buffer)
{
    return at<BYTES>(buffer + SPAN + 16 * threadIdx.x);
}

// What a lane stores: its result of an earlier launch.
template <int BYTES>
__device__ auto value(const unsigned char *buffer)
{
    return result<BYTES>((unsigned char *)buffer);
}

__device__ unsigned shared_address(int address) { return (unsigned)__cvta_generic_to_shared(memory) + address; }

#define REQUEST(name, ...)                                                                                         \
    extern "C" __global__ void name(unsigned char *buffer, unsigned request)                                       \
    {                                                                                                              \
        const int address = addresses[request][threadIdx.x];                                                       \
        if (address < 0) return;                                                                                   \
        __VA_ARGS__;                                                                                               \
    }

#define WIDTH(bytes)                                                                                               \
    REQUEST(load##bytes, result<bytes>(buffer) = at<bytes>(memory + address))                                      \
    REQUEST(store##bytes, at<bytes>(memory + address) = value<bytes>(buffer))                                      \
    REQUEST(global_load##bytes, result<bytes>(buffer) = at<bytes>(buffer + address))                               \
    REQUEST(global_store##bytes, at<bytes>(buffer + address) = typename Element<bytes>::type{})

WIDTH(1)
WIDTH(2)
WIDTH(4)
WIDTH(8)
WIDTH(16)

REQUEST(atomic_add4, result<4>(buffer) = atomicAdd((unsigned *)(memory + address), threadIdx.x + 1))
REQUEST(atomic_cas4, result<4>(buffer) = atomicCAS((unsigned *)(memory + address), threadIdx.x, 1u))
REQUEST(atomic_cas8, *(unsigned long long *)(buffer + SPAN + 16 * threadIdx.x) =
                         atomicCAS((unsigned long long *)(memory + address), threadIdx.x, 1ull))

#if __CUDA_ARCH__ >= 800
#define ASYNC(bytes, cache)                                                                                        \
    REQUEST(async##bytes,                                                                                          \
            asm volatile("cp.async." cache ".shared.global [%0], [%1], " #bytes ";\n"                              \
                         "cp.async.wait_all;"                                                                      \
                         :: "r"(shared_address(address)), "l"(buffer + bytes * threadIdx.x) : "memory"))

ASYNC(4, "ca")
ASYNC(8, "ca")
ASYNC(16, "cg")
#endif

// A matrix instruction takes the whole warp, and the addresses of as many lanes as it moves rows.
#define MATRICES(name, ...)                                                                                        \
    extern "C" __global__ void name(unsigned char *buffer, unsigned request)                                       \
    {                                                                                                              \
        const unsigned row = shared_address(max((int)addresses[request][threadIdx.x], 0));                         \
        uint4 words = {};                                                                                          \
        asm volatile(__VA_ARGS__ : "memory");                                                                      \
        result<16>(buffer) = words;                                                                                \
    }

#if __CUDA_ARCH__ >= 750
MATRICES(ldmatrix1, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(words.x) : "r"(row))
MATRICES(ldmatrix2, "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
         : "=r"(words.x), "=r"(words.y) : "r"(row))
MATRICES(ldmatrix4, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
         : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w) : "r"(row))
#endif
#if __CUDA_ARCH__ >= 900
MATRICES(stmatrix1, "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" :: "r"(row), "r"(words.x))
MATRICES(stmatrix2, "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
         :: "r"(row), "r"(words.x), "r"(words.y))
MATRICES(stmatrix4, "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
         :: "r"(row), "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w))
#endif
"""
