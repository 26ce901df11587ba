"""Copies from global to shared memory: by registers, asynchronous (cp.async) and in bulk (cp.async.bulk).

A thread's cp.async moves 4, 8 or 16 bytes past its registers, from compute capability 8.0 on. From 9.0 on one thread
starts a copy of any size in bulk, and an mbarrier counts its bytes (PTX ISA, "Asynchronous copy"). The data lie in the
L2. They are read past the L1, except by cp.async of 4 and 8 bytes, which reads lines that the L1 lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.kernels.program import CudaCKernel
from smembench.model.hardware import WARP
from smembench.model.measurement import Status
from smembench.studies.probe.figure import Figure, verify

if TYPE_CHECKING:
    from smembench.model.problem import Array
    from smembench.studies.probe.bench import Bench

CAPABILITY = (8, 0)

SOURCE = r"""
constexpr unsigned RING = 64 * 1024, STAGE = 16 * 1024, STAGES = RING / STAGE;

extern __shared__ __align__(128) unsigned char ring[];

__device__ unsigned shared_address(const void *pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }

// Through registers.
struct Plain {
    __device__ void copy(unsigned char *to, const unsigned char *from, unsigned bytes)
    {
        for (unsigned at = 16 * threadIdx.x; at < bytes; at += 16 * blockDim.x)
            *(uint4 *)&to[at] = __ldcg((const uint4 *)&from[at]);
        __syncthreads();
    }

    __device__ void stream(const unsigned char *from, unsigned region, unsigned stages, unsigned)
    {
        for (unsigned stage = 0; stage < stages; stage += STAGES) {
            uint4 held[STAGES];
            for (unsigned i = 0; i < STAGES; ++i)
                held[i] = __ldcg((const uint4 *)&from[((stage + i) * STAGE & (region - 1)) + 16 * threadIdx.x]);
            for (unsigned i = 0; i < STAGES; ++i) *(uint4 *)&ring[i * STAGE + 16 * threadIdx.x] = held[i];
        }
    }
};

// Asynchronous, SIZE bytes per instruction.
template <unsigned SIZE>
struct Async {
    static __device__ void start(unsigned char *to, const unsigned char *from, unsigned bytes)
    {
        for (unsigned at = SIZE * threadIdx.x; at < bytes; at += SIZE * blockDim.x) {
            if constexpr (SIZE == 16)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                             :: "r"(shared_address(&to[at])), "l"(&from[at]) : "memory");
            else
                asm volatile("cp.async.ca.shared.global [%0], [%1], %2;"
                             :: "r"(shared_address(&to[at])), "l"(&from[at]), "n"(SIZE) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    }

    template <unsigned PENDING>
    static __device__ void wait()
    {
        asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
    }

    __device__ void copy(unsigned char *to, const unsigned char *from, unsigned bytes)
    {
        start(to, from, bytes);
        wait<0>();
        __syncthreads();
    }

    __device__ void stream(const unsigned char *from, unsigned region, unsigned stages, unsigned)
    {
        for (unsigned stage = 0; stage < stages; ++stage) {
            start(&ring[stage % STAGES * STAGE], &from[stage * STAGE & (region - 1)], STAGE);
            wait<STAGES - 1>();
        }
        wait<0>();
    }
};

#if __CUDA_ARCH__ >= 900
// In bulk, by the first thread; each stage of the ring has an mbarrier.
struct Bulk {
    unsigned barriers, phase = 0;

    __device__ Bulk()
    {
        __shared__ unsigned long long memory[STAGES];
        barriers = shared_address(memory);
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

    __device__ void start(unsigned stage, unsigned char *to, const unsigned char *from, unsigned bytes)
    {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                     :: "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(barriers + 8 * stage) : "memory");
    }

    __device__ void wait(unsigned stage, unsigned parity)
    {
        asm volatile("{ .reg .pred done;\n"
                     "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                     "@!done bra again; }" :: "r"(barriers + 8 * stage), "r"(parity) : "memory");
    }

    __device__ void copy(unsigned char *to, const unsigned char *from, unsigned bytes)
    {
        if (threadIdx.x == 0) {
            expect(0, bytes);
            start(0, to, from, bytes);
        }
        wait(0, phase);
        phase ^= 1;
    }

    __device__ void stream(const unsigned char *from, unsigned region, unsigned stages, unsigned bytes)
    {
        if (threadIdx.x != 0) return;
        for (unsigned stage = 0; stage < stages + STAGES; ++stage) {
            const unsigned slot = stage % STAGES;
            if (stage >= STAGES) wait(slot, (stage / STAGES - 1) % 2);
            if (stage >= stages) continue;
            expect(slot, STAGE);
#pragma unroll 8
            for (unsigned at = 0; at < STAGE; at += bytes)
                start(slot, &ring[slot * STAGE + at], &from[(stage * STAGE & (region - 1)) + at], bytes);
        }
    }
};
#endif

// How many words of the ring differ from the source, of those that this thread looks at: none that it copied.
__device__ unsigned differing(const unsigned char *from, unsigned bytes)
{
    unsigned count = 0;
    for (unsigned at = 4 * threadIdx.x; at < bytes; at += 4 * blockDim.x)
        count += *(unsigned *)&ring[bytes - 4 - at] != __ldcg((const unsigned *)&from[bytes - 4 - at]);
    return count;
}

// Cycles of each of many copies, one after another, until all threads of the block have the data.
template <typename Way>
__device__ void latency(long long *out, const unsigned char *from, unsigned bytes, unsigned copies, unsigned apart)
{
    Way way;
    unsigned wrong = 0;
    for (unsigned copy = 0; copy < copies; ++copy, from += apart) {
        __syncthreads();
        const long long start = clock64();
        way.copy(ring, from, bytes);
        const long long cycles = clock64() - start;
        if (threadIdx.x == 0) out[copy] = cycles;
        wrong += differing(from, bytes);
    }
    wrong = __syncthreads_count(wrong != 0);
    if (threadIdx.x == 0) out[copies] = wrong;
}

// Per block: cycles of so many stages, one after another into the ring, from a region of its own over and over; the
// region's size is a power of two. Only copies in bulk have a size, in bytes.
template <typename Way>
__device__ void rate(long long *out, const unsigned char *from, unsigned region, unsigned stages, unsigned bytes)
{
    Way way;
    from += (size_t)blockIdx.x * region;
    __syncthreads();
    const long long start = clock64();
    way.stream(from, region, stages, bytes);
    __syncthreads();
    const long long cycles = clock64() - start;
    const int wrong = __syncthreads_count(differing(&from[(stages - STAGES) * STAGE & (region - 1)], RING) != 0);
    if (threadIdx.x == 0) {
        out[2 * blockIdx.x] = cycles;
        out[2 * blockIdx.x + 1] = wrong;
    }
}

#define WAY(name, ...)                                                                                             \
    extern "C" __global__ void latency_##name(long long *out, const unsigned char *from, unsigned bytes,           \
                                              unsigned copies, unsigned apart)                                     \
    {                                                                                                              \
        latency<__VA_ARGS__>(out, from, bytes, copies, apart);                                                     \
    }                                                                                                              \
    extern "C" __global__ void rate_##name(long long *out, const unsigned char *from, unsigned region,             \
                                           unsigned stages, unsigned bytes)                                        \
    {                                                                                                              \
        rate<__VA_ARGS__>(out, from, region, stages, bytes);                                                       \
    }

WAY(plain, Plain)
WAY(async4, Async<4>)
WAY(async8, Async<8>)
WAY(async16, Async<16>)
#if __CUDA_ARCH__ >= 900
WAY(bulk, Bulk)
#endif
"""

_BULK = (9, 0)
"""The least compute capability with copies in bulk."""
_KIB = 1024
_RING, _STAGE = 64 * _KIB, 16 * _KIB
"""As in the source, in bytes."""
_VECTOR = 16
"""Bytes that a thread copies through registers at once."""
_STAGES = 512
"""Stages per launch whose bandwidth is measured."""
_COPIES = 256
"""Copies per launch whose latency is measured, each from another address."""
_REGION = 2**21
"""Bytes that one SM copies from: more than its L1 holds."""
_SEED = 1
_UNTIL = "mean over addresses in the L2, until all threads of the block see the data"
_IN_FLIGHT = "from the L2, 64 KiB in flight"

_WAYS = {
    "plain": "load and store",
    "async4": "cp.async of 4 bytes",
    "async8": "cp.async of 8 bytes",
    "async16": "cp.async of 16 bytes",
    "bulk": "cp.async.bulk",
}
_LATENCIES = (
    *((way, 128) for way in _WAYS),
    *((way, size * _KIB) for size in (2, 16) for way in ("plain", "async16", "bulk")),
    ("bulk", _RING),
)
"""Ways to copy, and bytes per copy."""
_RATES = (
    *((way, _STAGE, False) for way in _WAYS),
    ("bulk", 128, False),
    ("bulk", _KIB, False),
    *((way, _STAGE, True) for way in ("plain", "async16", "bulk")),
)
"""Ways to copy, bytes that one thread starts at once, and whether all SMs copy."""


def figures(bench: Bench) -> Iterator[Figure]:
    """Latency by way and size, then bandwidth of one SM by itself and of all together."""
    words = max(_REGION, bench.sms * _RING) // 4
    source = bench.place(np.random.default_rng(_SEED).integers(0, 2**32, words, np.uint32))
    has_bulk = bench.capability >= _BULK
    for way, size in _LATENCIES:
        if way != "bulk" or has_bulk:
            samples = bench.trials(partial(_latency, bench, source, way, size))
            yield Figure.of(f"{_WAYS[way]}: latency of {_bytes(size)}", "cycles", samples, _UNTIL)
    if has_bulk:
        name, published = "cp.async.bulk over load and store: latency of 128 B", "about 170 (Luo et al. 2024, H800)"
        yield Figure.of(name, "cycles", bench.trials(partial(_difference, bench, source)), _UNTIL, published)
    for way, size, everywhere in _RATES:
        if way != "bulk" or has_bulk:
            samples = bench.trials(partial(_bandwidth, bench, source, way, size, bench.sms if everywhere else 1))
            pieces = f" of {_bytes(size)}" if way == "bulk" else ""
            where = "all SMs together" if everywhere else "one SM by itself"
            yield Figure.of(f"{_WAYS[way]}{pieces}: {where}", "B/clk/SM", samples, _IN_FLIGHT)
    if not has_bulk:
        yield Figure.missing(_WAYS["bulk"], Status.SKIPPED, "not on this device: needs compute capability 9.0")


def latencies(bench: Bench, source: Any, way: str, size: int) -> Array:
    """Cycles of each of a launch's copies of so many bytes.

    Raises:
        Unverified: if other data arrived than were copied.
    """
    copies = min(_COPIES, _REGION // size)
    threads = min(max(size // _VECTOR, WARP), _STAGE // _VECTOR)
    program = CudaCKernel(SOURCE, f"latency_{way}", grid=(1, 1), block=(threads, 1), dynamic_bytes=_RING)
    *cycles, wrong = bench.launch(program, source, size, copies, _REGION // copies, out=(np.int64, copies + 1))
    verify(f"the number of threads that saw wrong data from {_WAYS[way]}", int(wrong), 0)
    return np.array(cycles)


def _latency(bench: Bench, source: Any, way: str, size: int) -> float:
    return float(latencies(bench, source, way, size).mean())


def _difference(bench: Bench, source: Any) -> float:
    return _latency(bench, source, "bulk", 128) - _latency(bench, source, "plain", 128)


def _bandwidth(bench: Bench, source: Any, way: str, size: int, sms: int) -> float:
    """Bytes per clock and SM; the mean over the SMs."""
    program = CudaCKernel(SOURCE, f"rate_{way}", grid=(sms, 1), block=(_STAGE // _VECTOR, 1), dynamic_bytes=_RING)
    region = _REGION if sms == 1 else _RING
    out = bench.launch(program, source, region, _STAGES, size, out=(np.int64, 2 * sms))
    cycles, wrong = out.reshape(-1, 2).T
    verify(f"the number of threads that saw wrong data from {_WAYS[way]}", int(wrong.sum()), 0)
    return float((_STAGES * _STAGE / cycles).mean())


def _bytes(size: int) -> str:
    return f"{size // _KIB} KiB" if size >= _KIB else f"{size} B"
