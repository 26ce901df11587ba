"""ldmatrix and stmatrix: 8×8 matrices of 16-bit elements between shared memory and a warp's registers.

x1, x2 and x4 move that many matrices, a word of each per lane; ``.trans`` transposes them. Each row is 16 bytes at an
address that a lane gives. A matrix of packed rows takes one wavefront. Rows 128 bytes apart lie in the same four banks
and take eight (PTX ISA, "Warp-level matrix instructions").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from smembench.explain.banks import conflict_degree, wavefronts
from smembench.kernels.program import CudaCKernel
from smembench.model.hardware import WARP, WAVEFRONT_BYTES
from smembench.model.measurement import Status
from smembench.studies.probe.figure import Figure, at_least, verify

if TYPE_CHECKING:
    from smembench.studies.probe.bench import Bench

CAPABILITY = (7, 5)

SOURCE = r"""
constexpr unsigned STEPS = 2048, ROWS = 8;

extern __shared__ __align__(128) unsigned char memory[];

template <unsigned MATRICES, bool TRANSPOSED>
__device__ void load(unsigned (&words)[4], unsigned row)
{
    if constexpr (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "r"(row) : "memory");
    else if constexpr (MATRICES == 4)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3]) : "r"(row) : "memory");
    else if constexpr (MATRICES == 2)
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(words[0]), "=r"(words[1]) : "r"(row) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                     : "=r"(words[0]) : "r"(row) : "memory");
}

#if __CUDA_ARCH__ >= 900
template <bool TRANSPOSED>
__device__ void store(const unsigned (&words)[4], unsigned row)
{
    if constexpr (TRANSPOSED)
        asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(row), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
    else
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                     :: "r"(row), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
}
#endif

// Where the lower or the upper half of a lane's word of a matrix lies.
template <bool TRANSPOSED>
__device__ unsigned short *half(unsigned char *rows, unsigned pitch, unsigned matrix, unsigned upper)
{
    const unsigned lane = threadIdx.x % 32, down = lane / 4, across = lane % 4 * 2 + upper;
    const unsigned row = TRANSPOSED ? across : down, column = TRANSPOSED ? down : across;
    return (unsigned short *)&rows[(matrix * ROWS + row) * pitch] + column;
}

template <bool TRANSPOSED>
__device__ void write_word(unsigned char *rows, unsigned pitch, unsigned matrix, unsigned word)
{
    *half<TRANSPOSED>(rows, pitch, matrix, 0) = word;
    *half<TRANSPOSED>(rows, pitch, matrix, 1) = word >> 16;
}

template <bool TRANSPOSED>
__device__ unsigned read_word(unsigned char *rows, unsigned pitch, unsigned matrix)
{
    return *half<TRANSPOSED>(rows, pitch, matrix, 0) | *half<TRANSPOSED>(rows, pitch, matrix, 1) << 16;
}

// The address that a lane gives: of a row of the matrices from this one on.
template <unsigned MATRICES>
__device__ unsigned row_of(const unsigned char *rows, unsigned pitch, unsigned first = 0)
{
    return (unsigned)__cvta_generic_to_shared(rows) + (first * ROWS + threadIdx.x) % (MATRICES * ROWS) * pitch;
}

__device__ unsigned pattern(unsigned matrix) { return (threadIdx.x * 4 + matrix + 1) * 2654435761u; }

// The block's cycles and the number of its threads that found something wrong.
__device__ void report(long long *out, long long cycles, bool wrong)
{
    const int count = __syncthreads_count(wrong);
    if (threadIdx.x == 0) {
        out[0] = cycles;
        out[1] = count;
    }
}

// One warp: the word that a load returns to a lane is the address that it gives to the next.
template <unsigned MATRICES, bool TRANSPOSED>
__device__ void load_latency(long long *out, unsigned pitch)
{
    unsigned char *here = memory, *there = memory + MATRICES * ROWS * pitch;
    const unsigned begin = row_of<MATRICES>(here, pitch), other = row_of<MATRICES>(there, pitch);
    write_word<TRANSPOSED>(here, pitch, 0, other);
    write_word<TRANSPOSED>(there, pitch, 0, begin);
    __syncthreads();

    unsigned words[4], row = begin;
    const long long start = clock64();
#pragma unroll 16
    for (unsigned step = 0; step < STEPS; ++step) {
        load<MATRICES, TRANSPOSED>(words, row);
        row = words[0];
    }
    const long long cycles = clock64() - start;
    load<MATRICES, TRANSPOSED>(words, row);
    report(out, cycles, row != begin || words[0] != other);
}

// Each warp loads its own rows over and over. `still` is 0, which ptxas must not know: it would load them once.
template <unsigned MATRICES, bool TRANSPOSED>
__device__ void load_rate(long long *out, unsigned pitch, unsigned still)
{
    unsigned char *rows = memory + threadIdx.x / 32 * (MATRICES * ROWS * pitch);
    unsigned expected = 0, sum = 0;
    for (unsigned matrix = 0; matrix < MATRICES; ++matrix) {
        write_word<TRANSPOSED>(rows, pitch, matrix, pattern(matrix));
        expected += STEPS * pattern(matrix);
    }
    unsigned row = row_of<MATRICES>(rows, pitch);
    __syncthreads();

    const long long start = clock64();
#pragma unroll 8
    for (unsigned step = 0; step < STEPS; ++step) {
        unsigned words[4];
        load<MATRICES, TRANSPOSED>(words, row);
        for (unsigned matrix = 0; matrix < MATRICES; ++matrix) sum += words[matrix];
        row += still;
    }
    __syncthreads();
    report(out, clock64() - start, sum != expected);
}

#define LOADS(form, matrices, transposed)                                                          \
    extern "C" __global__ void load_latency_##form(long long *out, unsigned pitch)                 \
    { load_latency<matrices, transposed>(out, pitch); }                                            \
    extern "C" __global__ void load_rate_##form(long long *out, unsigned pitch, unsigned still)    \
    { load_rate<matrices, transposed>(out, pitch, still); }

LOADS(x1, 1, false) LOADS(x2, 2, false) LOADS(x4, 4, false) LOADS(x4_trans, 4, true)

#if __CUDA_ARCH__ >= 900
// Each warp stores its own rows over and over.
template <bool TRANSPOSED>
__device__ void store_rate(long long *out, unsigned pitch)
{
    unsigned char *rows = memory + threadIdx.x / 32 * (4 * ROWS * pitch);
    unsigned words[4];
    for (unsigned matrix = 0; matrix < 4; ++matrix) words[matrix] = pattern(matrix);
    const unsigned row = row_of<4>(rows, pitch);
    __syncthreads();

    const long long start = clock64();
#pragma unroll 8
    for (unsigned step = 0; step < STEPS; ++step) store<TRANSPOSED>(words, row);
    __syncthreads();
    const long long cycles = clock64() - start;
    bool wrong = false;
    for (unsigned matrix = 0; matrix < 4; ++matrix)
        wrong |= read_word<TRANSPOSED>(rows, pitch, matrix) != words[matrix];
    report(out, cycles, wrong);
}

extern "C" __global__ void store_rate_x4(long long *out, unsigned pitch) { store_rate<false>(out, pitch); }
extern "C" __global__ void store_rate_x4_trans(long long *out, unsigned pitch) { store_rate<true>(out, pitch); }

// One warp stores four matrices and loads them, from the second on: each time they move on by one register.
extern "C" __global__ void store_latency_x4(long long *out, unsigned pitch)
{
    const unsigned to = row_of<4>(memory, pitch), from = row_of<4>(memory, pitch, 1);
    unsigned words[4];
    for (unsigned matrix = 0; matrix < 4; ++matrix) words[matrix] = pattern(matrix);

    const long long start = clock64();
#pragma unroll 16
    for (unsigned step = 0; step < STEPS; ++step) {
        store<false>(words, to);
        __syncwarp();
        load<4, false>(words, from);
        __syncwarp();
    }
    const long long cycles = clock64() - start;
    store<false>(words, to);
    __syncwarp();
    load<4, false>(words, from);
    bool wrong = false;
    for (unsigned matrix = 0; matrix < 4; ++matrix) wrong |= words[matrix] != pattern((matrix + STEPS + 1) % 4);
    report(out, cycles, wrong);
}
#endif
"""

_STORES = (9, 0)
"""The least compute capability with stmatrix."""
_STEPS, _ROWS = 2048, 8
"""Instructions per warp and rows per matrix, as in the source."""
_WARPS = 16
"""Warps of the block whose throughput is measured."""
_ROW_BYTES = 16
_PACKED, _IN_STEP = _ROW_BYTES, WAVEFRONT_BYTES
"""Bytes from row to row: without conflicts, and with all rows of a matrix in the same banks."""
_CASES = (("x1", _PACKED), ("x2", _PACKED), ("x4", _PACKED), ("x4.trans", _PACKED), ("x4", _IN_STEP))
_KIND = {"ldmatrix": "load", "stmatrix": "store"}
_CHAIN = "one warp; each load returns the addresses of the next"
_PAIRS = "one warp; each store writes what the load before it returned"
_BUSY = f"{_WARPS} warps on one SM, each at rows of its own: cycles per instruction"


def figures(bench: Bench) -> Iterator[Figure]:
    """Latency and throughput of loads, then of stores."""
    for form, pitch in _CASES:
        samples = _cycles(bench, "load_latency", form, pitch)
        yield Figure.of(f"{called('ldmatrix', form, pitch)}: latency", "cycles", samples, _CHAIN)
    for form, pitch in _CASES:
        yield _throughput(bench, "ldmatrix", form, pitch)
    if bench.capability < _STORES:
        yield Figure.missing("stmatrix", Status.SKIPPED, "not on this device: needs compute capability 9.0")
        return
    samples = _cycles(bench, "store_latency", "x4", _PACKED)
    yield Figure.of("stmatrix.x4 and ldmatrix.x4: latency", "cycles", samples, _PAIRS)
    for form, pitch in _CASES[2:]:
        yield _throughput(bench, "stmatrix", form, pitch)


def called(instruction: str, form: str, pitch: int) -> str:
    """The instruction with its form, and the conflicts of its rows."""
    degree = conflict_degree(_rows(form, pitch), _ROW_BYTES, _KIND[instruction])
    return f"{instruction}.{form}" + (f", {degree:.0f}-way conflicts" if degree > 1 else "")


def _throughput(bench: Bench, instruction: str, form: str, pitch: int) -> Figure:
    """Cycles per instruction.

    Raises:
        Unverified: if they are fewer than the wavefronts, within what the block's begin and end may hide.
    """
    name, kind = called(instruction, form, pitch), _KIND[instruction]
    least = wavefronts(_rows(form, pitch), _ROW_BYTES, kind)
    samples = _cycles(bench, f"{kind}_rate", form, pitch, _WARPS)
    at_least(f"cycles per {name}", min(samples), 0.99 * least)
    return Figure.of(f"{name}: throughput", "cycles", samples, _BUSY, f"{least} (wavefronts)")


def _cycles(bench: Bench, kernel: str, form: str, pitch: int, warps: int = 1) -> list[float]:
    """Cycles per instruction of a block of that number of warps; a latency takes two sets of rows."""
    shared = max(warps, 2) * _matrices(form) * _ROWS * pitch
    entry = f"{kernel}_{form.replace('.', '_')}"
    program = CudaCKernel(SOURCE, entry, grid=(1, 1), block=(WARP * warps, 1), dynamic_bytes=shared)
    arguments = (pitch, 0) if kernel == "load_rate" else (pitch,)

    def one() -> float:
        cycles, wrong = bench.launch(program, *arguments, out=(np.int64, 2))
        verify(f"the number of wrong threads of {entry}", int(wrong), 0)
        return int(cycles) / (_STEPS * warps)

    return bench.trials(one)


def _rows(form: str, pitch: int) -> range:
    """The addresses of an instruction, which are those of lanes that load 16 bytes each."""
    return range(0, _matrices(form) * _ROWS * pitch, pitch)


def _matrices(form: str) -> int:
    return int(form[1])
