"""What the products by warp groups share in CUDA C, under the names of warp_groups.py and of the intrinsics it uses.

Without the headers of a CUDA toolkit, what is new in compute capability 9.0 is inline PTX. The functions between
``#ifdef`` and ``#endif`` are the GPU's; what runs a kernel elsewhere gives others of these names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from smembench.kernels.common.cuda_c import port
from smembench.kernels.intrinsics.bulk_copy import CHUNK, ROW_BYTES, TILE_ALIGNMENT
from smembench.kernels.intrinsics.warp_group import GROUP, ROWS
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.warp_groups import Tile
from smembench.model.case import BY_ROWS, Case
from smembench.model.formats import HALVES


def _product(columns: int, kind: str) -> str:
    """The branch of ``start_product`` for results of so many columns; its registers have to be written one by one."""
    count = columns // 2
    places, sums = (", ".join(map(form.format, range(count))) for form in ("%{}", '"+f"(sums[{}])'))
    return f"""\
    if constexpr (WIDTH == {columns} && BFLOAT16 == {int(kind == "bf16")})
        asm volatile("wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{kind}.{kind} "
                     "{{{places}}}, %{count}, %{count + 1}, 1, 1, 1, 0, %{count + 2};"
                     : {sums}
                     : "l"(a), "l"(b), "n"(BY_ROWS) : "memory");
"""


_PRODUCTS = "".join(_product(columns, kind) for columns in range(64, 257, 32) for kind in ("bf16", "f16"))

_INTRINSICS = """
typedef const void *Map;

#ifdef __CUDA_ARCH__
typedef unsigned long long Barrier;

__device__ __forceinline__ unsigned shared_address(const void *at) { return (unsigned)__cvta_generic_to_shared(at); }

// All shared memory that a launch gives a block.
__device__ __forceinline__ void *dynamic_memory()
{
    extern __shared__ __align__(TILE_ALIGNMENT) unsigned char memory[];
    return memory;
}

__device__ __forceinline__ void set_barrier(Barrier *barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void publish_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void acquire_map(Map source)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(source) : "memory");
}

__device__ __forceinline__ void prefetch_map(Map source)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(source) : "memory");
}

__device__ __forceinline__ void expect_bytes(Barrier *barrier, unsigned count)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(shared_address(barrier)), "r"(count) : "memory");
}

__device__ __forceinline__ void arrive(Barrier *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void wait_for_phase(Barrier *barrier, unsigned phase)
{
    asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; "
                 "@!done bra again; }" :: "r"(shared_address(barrier)), "r"(phase) : "memory");
}

__device__ __forceinline__ void start_copy(T *tile, Map source, unsigned column, unsigned row, Barrier *barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" :: "r"(shared_address(tile)), "l"(source), "r"(column), "r"(row),
                 "r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void publish_tile() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void start_store(Map target, unsigned column, unsigned row, const T *tile)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 :: "l"(target), "r"(column), "r"(row), "r"(shared_address(tile)) : "memory");
}

__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

template <unsigned NEWEST> __device__ __forceinline__ void finish_stores()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(NEWEST) : "memory");
}

// A thread's warp group; the same for a warp, as the compiler can tell.
__device__ __forceinline__ unsigned own_group() { return __shfl_sync(0xffffffff, threadIdx.x / GROUP, 0); }

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <unsigned NEWEST> __device__ __forceinline__ void finish_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(NEWEST) : "memory");
}

template <unsigned COUNT> __device__ __forceinline__ void add_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT) : "memory");
}

template <unsigned COUNT> __device__ __forceinline__ void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT) : "memory");
}

// Where a swizzled operand with so many bytes per row begins and its strides, in units of 16 bytes.
__device__ __forceinline__ unsigned long long descriptor(const T *tile, unsigned leading, unsigned row_bytes)
{
    unsigned start = (shared_address(tile) & 0x3FFFF) / CHUNK;
    unsigned long long swizzle = row_bytes == ROW_BYTES ? 1 : 2;
    return start | leading / CHUNK << 16 | (8 * row_bytes / CHUNK | swizzle << 30) << 32;
}

template <unsigned WIDTH, bool BY_ROWS>
__device__ __forceinline__ void start_product(float (&sums)[WIDTH / 2], unsigned long long a, unsigned long long b)
{
    static_assert(WIDTH % 32 == 0 && WIDTH >= 64 && WIDTH <= 256);
PRODUCTS}

template <unsigned WIDTH, bool BY_ROWS>
__device__ __forceinline__ void multiply(float (&sums)[WIDTH / 2], const T *a_tile, const T *b_tile, unsigned thread)
{
    constexpr unsigned STEP = 16, ALONG_A = STEP * sizeof(T) / CHUNK;
    constexpr unsigned B_BYTES = BY_ROWS ? PIECE_BYTES : ROW_BYTES;
    constexpr unsigned ALONG_B = BY_ROWS ? STEP * B_BYTES / CHUNK : ALONG_A;
    unsigned long long a = descriptor(a_tile, CHUNK, ROW_BYTES);
    unsigned long long b = descriptor(b_tile, BY_ROWS ? DEPTH * B_BYTES : CHUNK, B_BYTES);
#pragma unroll
    for (unsigned step = 0; step < DEPTH / STEP; ++step)
        start_product<WIDTH, BY_ROWS>(sums, a + ALONG_A * step, b + ALONG_B * step);
}

__device__ __forceinline__ void store_pair(T *to, float one, float other)
{
    unsigned both;
    if (BFLOAT16)
        asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(one), "f"(other));
    else
        asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(one), "f"(other));
    *(unsigned *)to = both;
}
#endif
"""

_SHARED = """
constexpr unsigned A_ELEMENTS = ROWS * DEPTH, ELEMENTS = (ROWS + COLUMNS) * DEPTH;

struct Matrix { T *elements; unsigned rows, columns, stride; };
struct Place { unsigned row, col; };
struct Maps { Map a, b; };
struct Stages { T *tiles; Barrier *full, *empty; };
struct Member { unsigned group, thread; };
struct PipelineState { unsigned stage, phase; };

__device__ __forceinline__ PipelineState next_state(PipelineState state)
{
    bool last = state.stage + 1 == STAGES;
    return {last ? 0 : state.stage + 1, last ? 1 - state.phase : state.phase};
}

__device__ __forceinline__ void set_up_barriers(const Stages &stages, const Maps &maps, unsigned readers)
{
    for (unsigned stage = 0; stage < STAGES; ++stage) {
        set_barrier(&stages.full[stage], 1);
        set_barrier(&stages.empty[stage], readers);
    }
    publish_barriers();
    acquire_map(maps.a);
    acquire_map(maps.b);
}

// For one thread: start the copies of a stage from k0 on.
__device__ __forceinline__ void copy(const Stages &stages, unsigned stage, const Maps &maps, Place place, unsigned k0)
{
    T *at = &stages.tiles[stage * ELEMENTS];
    Barrier *full = &stages.full[stage];
    expect_bytes(full, ELEMENTS * sizeof(T));
    start_copy(at, maps.a, k0, place.row, full);
    at += A_ELEMENTS;
    if (B_BY_ROWS)
        for (unsigned column = 0; column < COLUMNS; column += PIECE_BYTES / sizeof(T))
            start_copy(&at[column * DEPTH], maps.b, place.col + column, k0, full);
    else
        start_copy(at, maps.b, k0, place.col, full);
}

// For one thread: copy the tiles along all of k.
__device__ __forceinline__ PipelineState producer_loop(
    const Stages &stages, PipelineState state, const Maps &maps, Place place, unsigned k)
{
    for (unsigned k0 = 0; k0 < k; k0 += DEPTH) {
        wait_for_phase(&stages.empty[state.stage], 1 - state.phase);
        copy(stages, state.stage, maps, place, k0);
        state = next_state(state);
    }
    return state;
}

// One thread of a consumer says that it has read a stage.
__device__ __forceinline__ void release(Barrier *empty, unsigned thread)
{
    if (thread == 0)
        arrive(empty);
}

// A consumer's main loop over all of k.
__device__ __forceinline__ PipelineState main_loop(
    float (&accumulators)[COLUMNS / 2], const Stages &stages, PipelineState state, Member member, unsigned k)
{
#pragma unroll
    for (unsigned i = 0; i < COLUMNS / 2; ++i)
        accumulators[i] = 0;
    unsigned before = state.stage;
    for (unsigned k0 = 0; k0 < k; k0 += DEPTH) {
        wait_for_phase(&stages.full[state.stage], state.phase);
        const T *tiles = &stages.tiles[state.stage * ELEMENTS];
        begin_products();
        const T *a_tile = &tiles[member.group * GROUP_ROWS * DEPTH];
        multiply<COLUMNS, B_BY_ROWS>(accumulators, a_tile, &tiles[A_ELEMENTS], member.thread);
        commit_products();
        finish_products<1>();
        if (k0 > 0)
            release(&stages.empty[before], member.thread);
        before = state.stage;
        state = next_state(state);
    }
    finish_products<0>();
    release(&stages.empty[before], member.thread);
    return state;
}

// A group's 64 rows, where they are in C.
__device__ __forceinline__ void write(const Matrix &C, const float (&sums)[COLUMNS / 2], Place place, unsigned thread)
{
    unsigned row = place.row + thread / 32 * 16 + thread % 32 / 4, col = place.col + thread % 4 * 2;
#pragma unroll
    for (unsigned group = 0; group < COLUMNS / 8; ++group)
#pragma unroll
        for (unsigned half = 0; half < 2; ++half)
            if (row + half * 8 < C.rows && col + group * 8 < C.columns)
                store_pair(&C.elements[(row + half * 8) * C.stride + col + group * 8], sums[group * 4 + half * 2],
                           sums[group * 4 + half * 2 + 1]);
}
"""


def warp_group_port(
    kernel: Kernel, source: str, tile_of: Callable[[Case], Tile], constants: Mapping[str, int] | None = None
) -> Kernel:
    """The CUDA C port of a kernel by warp groups, for element types of 16 bits.

    Args:
        source: CUDA C that may use what this module shares.
        tile_of: a block's tile of a case.
        constants: further constants by name.
    """

    def sizes(case: Case) -> Mapping[str, int]:
        tile = tile_of(case)
        sides = {"ROWS": tile.rows, "COLUMNS": tile.columns, "DEPTH": tile.depth, "STAGES": tile.stages}
        types = {"BFLOAT16": int(case.dtype == "bfloat16"), "B_BY_ROWS": int(case.b_layout == BY_ROWS)}
        lengths = {"TILE_ALIGNMENT": TILE_ALIGNMENT, "ROW_BYTES": ROW_BYTES, "CHUNK": CHUNK}
        lengths["PIECE_BYTES"] = tile.piece_bytes  # as of results
        return {**sides, **types, **lengths, "GROUP": GROUP, "GROUP_ROWS": ROWS, **(constants or {})}

    def unsupported(case: Case) -> str | None:
        if case.dtype not in HALVES:
            return f"the CUDA C port of {case.kernel} takes {' and '.join(HALVES)}, not {case.dtype}"
        return kernel.unsupported(case)

    return port(kernel, _INTRINSICS.replace("PRODUCTS", _PRODUCTS) + _SHARED + source, sizes, unsupported)
