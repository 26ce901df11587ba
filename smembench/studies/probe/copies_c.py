"""CUDA C of the copies: three ways, and kernels that time each one by one and in a stream."""

from __future__ import annotations

SOURCE = r"""
constexpr unsigned RING = 64 * 1024, STAGE = 16 * 1024, STAGES = RING / STAGE, VECTOR = 16;

extern __shared__ __align__(128) unsigned char ring[];

__device__ unsigned shared_address(const void *pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

// A value that all threads have: it stays in a register, where ptxas would compute it again within the time.
__device__ unsigned uniform(unsigned value) { return __shfl_sync(__activemask(), value, 0); }

__device__ void store(unsigned to, uint4 vector)
{
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
                 :: "r"(to), "r"(vector.x), "r"(vector.y), "r"(vector.z), "r"(vector.w) : "memory");
}

// The ways to copy. copy() copies BYTES once, which all threads see when it returns. stream() copies so many stages,
// from a region over and over, whose size is a power of two.

// Through registers, a vector per thread.
struct Plain {
    template <unsigned BYTES>
    __device__ void copy(unsigned to, const unsigned char *from)
    {
        store(to + VECTOR * threadIdx.x, __ldcg((const uint4 *)&from[VECTOR * threadIdx.x]));
        __syncthreads();
    }

    template <unsigned>
    __device__ void stream(unsigned to, const unsigned char *from, unsigned region, unsigned stages)
    {
        const unsigned at = VECTOR * threadIdx.x;
        for (unsigned stage = 0; stage < stages; stage += STAGES) {
            uint4 held[STAGES];
            for (unsigned i = 0; i < STAGES; ++i)
                held[i] = __ldcg((const uint4 *)&from[((stage + i) * STAGE & (region - 1)) + at]);
            for (unsigned i = 0; i < STAGES; ++i) store(to + i * STAGE + at, held[i]);
        }
    }
};

// Asynchronous, SIZE bytes per thread.
template <unsigned SIZE>
struct Async {
    static __device__ void start(unsigned to, const unsigned char *from)
    {
        if constexpr (SIZE == VECTOR)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from) : "memory");
        else
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(SIZE) : "memory");
    }

    template <unsigned PENDING>
    static __device__ void wait()
    {
        asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
    }

    static __device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

    template <unsigned BYTES>
    __device__ void copy(unsigned to, const unsigned char *from)
    {
        start(to + SIZE * threadIdx.x, &from[SIZE * threadIdx.x]);
        commit();
        wait<0>();
        __syncthreads();
    }

    template <unsigned>
    __device__ void stream(unsigned to, const unsigned char *from, unsigned region, unsigned stages)
    {
        for (unsigned stage = 0; stage < stages; ++stage) {
            for (unsigned at = SIZE * threadIdx.x; at < STAGE; at += SIZE * blockDim.x)
                start(to + stage % STAGES * STAGE + at, &from[(stage * STAGE & (region - 1)) + at]);
            commit();
            wait<STAGES - 1>();
        }
        wait<0>();
    }
};

#if __CUDA_ARCH__ >= 900
// In bulk, by the first thread; each stage of the ring has an mbarrier.
struct Bulk {
    unsigned barriers, parity = 0;

    __device__ Bulk()
    {
        __shared__ unsigned long long memory[STAGES];
        barriers = uniform(shared_address(memory));
        if (threadIdx.x == 0) {
            for (unsigned stage = 0; stage < STAGES; ++stage)
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barriers + 8 * stage) : "memory");
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
    }

    __device__ void expect(unsigned stage, unsigned bytes)
    {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :: "r"(barriers + 8 * stage), "r"(bytes) : "memory");
    }

    __device__ void start(unsigned stage, unsigned to, const unsigned char *from, unsigned bytes)
    {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(to), "l"(from), "r"(bytes), "r"(barriers + 8 * stage) : "memory");
    }

    __device__ void wait(unsigned stage, unsigned phase)
    {
        asm volatile("{ .reg .pred done;\n"
                     "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                     "@!done bra again; }" :: "r"(barriers + 8 * stage), "r"(phase % 2) : "memory");
    }

    template <unsigned BYTES>
    __device__ void copy(unsigned to, const unsigned char *from)
    {
        if (threadIdx.x == 0) {
            expect(0, BYTES);
            start(0, to, from, BYTES);
        }
        wait(0, parity);
        parity ^= 1;
    }

    template <unsigned BYTES>
    __device__ void stream(unsigned to, const unsigned char *from, unsigned region, unsigned stages)
    {
        if (threadIdx.x != 0) return;
        for (unsigned stage = 0; stage < stages + STAGES; ++stage) {
            const unsigned slot = stage % STAGES;
            if (stage >= STAGES) wait(slot, stage / STAGES - 1);
            if (stage >= stages) continue;
            expect(slot, STAGE);
#pragma unroll 16
            for (unsigned at = 0; at < STAGE; at += BYTES)
                start(slot, to + slot * STAGE + at, &from[(stage * STAGE & (region - 1)) + at], BYTES);
        }
    }
};
#endif

// Whether words of the ring differ from the source, of those that this thread looks at, which others copied, too.
__device__ bool differs(const unsigned char *from, unsigned bytes)
{
    bool found = false;
    for (unsigned at = 4 * threadIdx.x; at < bytes; at += 4 * blockDim.x)
        found |= *(unsigned *)&ring[bytes - 4 - at] != __ldcg((const unsigned *)&from[bytes - 4 - at]);
    return found;
}

// Cycles of each of many copies, one after another, then how many threads saw wrong data.
template <typename Way, unsigned BYTES>
__device__ void latency(long long *out, const unsigned char *from, unsigned copies, unsigned apart)
{
    Way way;
    const unsigned to = uniform(shared_address(ring));
    bool wrong = false;
    for (unsigned copy = 0; copy < copies; ++copy, from += apart) {
        __syncthreads();
        const long long start = clock64();
        way.template copy<BYTES>(to, from);
        const long long cycles = clock64() - start;
        if (threadIdx.x == 0) out[copy] = cycles;
        wrong |= differs(from, BYTES);
    }
    const int count = __syncthreads_count(wrong);
    if (threadIdx.x == 0) out[copies] = count;
}

// Per block: cycles of a stream from a region of its own, then how many threads saw wrong data.
template <typename Way, unsigned BYTES>
__device__ void rate(long long *out, const unsigned char *from, unsigned region, unsigned stages)
{
    Way way;
    from += (size_t)blockIdx.x * region;
    __syncthreads();
    const long long start = clock64();
    way.template stream<BYTES>(uniform(shared_address(ring)), from, region, stages);
    __syncthreads();
    const long long cycles = clock64() - start;
    const int wrong = __syncthreads_count(differs(&from[(stages - STAGES) * STAGE & (region - 1)], RING));
    if (threadIdx.x == 0) {
        out[2 * blockIdx.x] = cycles;
        out[2 * blockIdx.x + 1] = wrong;
    }
}

// Named after what it times and how: rate_bulk_1024.
#define ENTRY(kind, name, bytes, way)                                                                             \
    extern "C" __global__ void kind##_##name##_##bytes(long long *out, const unsigned char *from, unsigned count, \
                                                       unsigned size) { kind<way, bytes>(out, from, count, size); }

ENTRY(latency, plain, 128, Plain) ENTRY(latency, plain, 2048, Plain) ENTRY(latency, plain, 16384, Plain)
ENTRY(latency, async4, 128, Async<4>) ENTRY(latency, async8, 128, Async<8>) ENTRY(latency, async16, 128, Async<16>)
ENTRY(latency, async16, 2048, Async<16>) ENTRY(latency, async16, 16384, Async<16>)
ENTRY(rate, plain, 16384, Plain) ENTRY(rate, async4, 16384, Async<4>)
ENTRY(rate, async8, 16384, Async<8>) ENTRY(rate, async16, 16384, Async<16>)
#if __CUDA_ARCH__ >= 900
ENTRY(latency, bulk, 128, Bulk) ENTRY(latency, bulk, 2048, Bulk)
ENTRY(latency, bulk, 16384, Bulk) ENTRY(latency, bulk, 65536, Bulk)
ENTRY(rate, bulk, 128, Bulk) ENTRY(rate, bulk, 1024, Bulk) ENTRY(rate, bulk, 16384, Bulk)
#endif
"""
