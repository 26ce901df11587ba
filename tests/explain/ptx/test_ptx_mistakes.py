"""Mistakes of kernels in CUDA C++, and what depends on data that was not given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smembench.explain.costs import Costs
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import Module, parse
from smembench.launches.arguments import from_python
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.model.errors import UsageError
from smembench.toolchains.nvrtc import compile_source
from smembench.views.explain import sentences

pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = r"""
#define TRANSPOSE(name, BARRIER, EXTRA) \
extern "C" __global__ void name(float *out, const float *in, int n) { \
    __shared__ float tile[32][33]; \
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y; \
    tile[threadIdx.y][threadIdx.x] = in[y * n + x + EXTRA]; \
    BARRIER; \
    out[(blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y]; \
}
TRANSPOSE(right, __syncthreads(), 0)
TRANSPOSE(racing, , 0)
TRANSPOSE(outside, __syncthreads(), 1)
extern "C" __global__ void unwritten(float *out) {
    __shared__ float some[64];
    if (threadIdx.x < 32) some[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = some[threadIdx.x];
}
extern "C" __global__ void divergent(float *out) {
    __shared__ float some[64];
    some[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 40) __syncthreads();
    out[threadIdx.x] = some[63 - threadIdx.x];
}
extern "C" __global__ void returned(float *out, int n) {
    __shared__ float some[64];
    if (threadIdx.x >= n) return;
    some[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = some[n - 1 - threadIdx.x];
}
extern "C" __global__ void gathered(float *out, const float *in, const int *index, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && index[i] >= 0) out[i] = in[index[i]];
}
extern "C" __global__ void halved(float *out, const int *counts) {
    for (int i = threadIdx.x; i < counts[blockIdx.x]; i += 32) out[i] = 0;
}
extern "C" __global__ void far(float *out, int n) {
    __shared__ float some[64];
    some[threadIdx.x + n] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = some[threadIdx.x];
}
extern "C" __global__ void copied(float *out, const float *in) {
    __shared__ alignas(16) float some[64 * 4];
    unsigned to = (unsigned)__cvta_generic_to_shared(&some[threadIdx.x * 4]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(in + threadIdx.x * 4));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[threadIdx.x] = some[threadIdx.x];
}
#define PIPELINE(name, WAIT, BARRIER) \
extern "C" __global__ void name(float *out, const float *in, int steps) { \
    __shared__ alignas(16) float tiles[2][64 * 4]; \
    for (int i = 0; i <= steps; i++) { \
        if (i < steps) { \
            unsigned to = (unsigned)__cvta_generic_to_shared(&tiles[i % 2][threadIdx.x * 4]); \
            const float *of = in + (i * 64 + threadIdx.x) * 4; \
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(of)); \
        } \
        asm volatile("cp.async.commit_group;"); \
        if (i == 0) continue; \
        asm volatile(WAIT); \
        BARRIER; \
        out[(i - 1) * 64 + threadIdx.x] = tiles[(i - 1) % 2][threadIdx.x]; \
        __syncthreads(); \
    } \
}
PIPELINE(pipelined, "cp.async.wait_group 1;", __syncthreads())
PIPELINE(pipelined_all, "cp.async.wait_all;", __syncthreads())
PIPELINE(waiting_for_one_less, "cp.async.wait_group 2;", __syncthreads())
PIPELINE(waiting_apart, "cp.async.wait_group 1;", )
extern "C" __global__ void shifted(float *x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float next = x[i + 1];
    __syncthreads();
    x[i] = next;
}
extern "C" __global__ void swapped(float *x) {
    int i = blockIdx.x * blockDim.x;
    float other = x[i + blockDim.x - 1 - threadIdx.x];
    x[i + threadIdx.x] = other;
}
extern "C" __global__ void swapped_in_turn(float *x) {
    int i = blockIdx.x * blockDim.x;
    float other = x[i + blockDim.x - 1 - threadIdx.x];
    __syncthreads();
    x[i + threadIdx.x] = other;
}
extern "C" __global__ void doubled(float *x, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = 2 * x[i];
}
extern "C" __global__ void last_block(float *x, unsigned *count) {
    x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x;
    __threadfence();
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (last) x[threadIdx.x] += x[threadIdx.x + blockDim.x];
}
extern "C" __global__ void first_stores(float *x, float *out) {
    if (blockIdx.x == 0) x[threadIdx.x] = 1;
    else out[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];
}
extern "C" __global__ void shifted_volatile(float *x) {
    __shared__ volatile float some[64];
    some[threadIdx.x] = 1;
    __threadfence_block();
    x[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x + 1] + some[threadIdx.x];
}
extern "C" __global__ void flag_within(float *x) {
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x < 32) {
        while (flag == 0);
        x[blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + 32];
    } else {
        x[blockIdx.x * 64 + threadIdx.x] = 1;
        __threadfence_block();
        flag = 1;
    }
}
extern "C" __global__ void adds_twice(float *out) {
    __shared__ int some[64];
    some[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&some[threadIdx.x], 1);
    atomicAdd(&some[63 - threadIdx.x], 1);
    out[threadIdx.x] = some[threadIdx.x];
}
#define HANDED_OVER(name, ARRIVE) \
extern "C" __global__ void name(float *out) { \
    __shared__ float some[32]; \
    if (threadIdx.x < 32) { \
        some[threadIdx.x] = 1; \
        ARRIVE; \
    } else { \
        asm volatile("bar.sync 1, 64;" ::: "memory"); \
        out[threadIdx.x] = some[63 - threadIdx.x]; \
    } \
}
HANDED_OVER(handed_over, asm volatile("bar.arrive 1, 64;" ::: "memory"))
HANDED_OVER(not_handed_over, )
extern "C" __global__ void goes_on(float *out, const float *in, int n) {
    __shared__ float tile[64];
    int i = threadIdx.x;
    tile[i] = in[min(i, n - 1)];
    if (i < n)
        __syncthreads();
    out[min(i, n - 1)] = tile[i];
}
extern "C" __global__ void ends_sooner(float *out, const float *in, int n) {
    __shared__ float tile[64];
    float total = 0;
    for (int i = threadIdx.x; i < n; i += 64) {
        tile[threadIdx.x] = in[i];
        __syncthreads();
        total += tile[63 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = total + in[0];
}
extern "C" __global__ void stores_and_returns(float *out, const float *in, int n) {
    __shared__ float tile[64];
    int i = threadIdx.x;
    if (i >= n) {
        out[i] = 0;
        return;
    }
    tile[i] = in[i];
    __syncthreads();
    out[i] = tile[n - 1 - i];
}
extern "C" __global__ void scoped(float *out) {
    unsigned i;
    asm("{ .reg .u32 x; mov.u32 x, %%tid.x; add.u32 %0, x, 1; }" : "=r"(i));
    out[i] = 1;
}
extern "C" __global__ void textured(float *out, unsigned long long texture) {
    out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);
}
extern "C" __global__ void endless(int *flag) {
    while (true) *flag += 1;
}
extern "C" __global__ void on_time(float *out) {
    long long begin = clock64();
    out[threadIdx.x] = 1;
    while (clock64() - begin < 100) ;
    if (clock() % 3 == 1) out[threadIdx.x * 32] = 2;
}
extern "C" __global__ void by_multiprocessor(float *out) {
    unsigned multiprocessor;
    asm("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    out[multiprocessor % 32 * 64 + threadIdx.x] = 1;
}
extern "C" __global__ void divided(float *out, int by) {
    out[threadIdx.x % 8 + 8 * (64 / (int)(by - threadIdx.x / 32))] = threadIdx.x;
}
extern "C" __global__ void binned(int *out) {
    atomicAdd(&out[threadIdx.x % 7], 1);
}
extern "C" __global__ void loads_pairs(float *out, const float *in, int begin) {
    float2 pair = reinterpret_cast<const float2 *>(in + begin)[threadIdx.x];
    out[threadIdx.x] = pair.x + pair.y;
}
extern "C" __global__ void stores_fours(float *out, const float *in, int begin) {
    reinterpret_cast<float4 *>(out)[threadIdx.x] = make_float4(in[0], 1, 2, 3);
    if (threadIdx.x > 5) *reinterpret_cast<float4 *>(out + threadIdx.x * 4 + begin) = make_float4(in[0], 1, 2, 3);
}
extern "C" __global__ void loads_shared_pairs(float *out, const float *in, int begin) {
    __shared__ alignas(16) float first[4], some[260];
    for (int i = threadIdx.x; i < 260; i += 64) some[i] = first[i % 4] = in[i];
    __syncthreads();
    float2 pair = reinterpret_cast<float2 *>(some + begin)[threadIdx.x];
    out[threadIdx.x] = pair.x + pair.y + first[0];
}
extern "C" __global__ void adds_in_words(char *out, const float *in, int begin) {
    atomicAdd(reinterpret_cast<int *>(out + begin) + threadIdx.x, 1);
}
extern "C" __global__ void either(float *out, const float *in, int n) {
    __shared__ float some[64];
    float total = 0;
    for (int t = 0; t < n; t += 64) {
        if (threadIdx.x + t < n)
            some[threadIdx.x] = in[threadIdx.x + t];
        else
            some[threadIdx.x] = 0;
        __syncthreads();
        for (int i = 0; i < 64; i++) total += some[i];
    }
    out[threadIdx.x] = total;
}
extern "C" __global__ void summed(float *out, const float *in, float factor, double more) {
    *out = *in * factor + more;
}
"""
FLOATS = ArrayArgument((64, 64), np.dtype("float32"))


@pytest.fixture(scope="module")
def module() -> Module:
    return parse(compile_source(SOURCE, Path("mistakes.cu"), "9.0", []).ptx)


def run(module: Module, name: str, arguments: Sequence[Argument], grid: int = 1, block: int = 64) -> Costs:
    return explain_ptx(module.kernels[name], Call((grid,), (block,), arguments), title=name, filename="mistakes.cu")


@pytest.mark.parametrize(
    ("name", "kinds"), [("right", []), ("racing", ["race"]), ("outside", ["outside"])], ids=lambda item: str(item)
)
def test_mistakes_of_a_transpose_are_named_with_their_kind(module: Module, name: str, kinds: list[str]) -> None:
    result = explain_ptx(
        module.kernels[name], Call((2, 2), (32, 32), [FLOATS, FLOATS, 64]), title=name, filename="mistakes.cu"
    )
    assert [mistake.kind for mistake in result.trace.mistakes] == kinds


@pytest.mark.parametrize(("name", "kinds"), [("unwritten", {"unwritten"}), ("divergent", {"barrier", "race"})])
def test_loads_of_nothing_and_divergent_barriers_are_mistakes(module: Module, name: str, kinds: set[str]) -> None:
    result = run(module, name, [ArrayArgument((64,), np.dtype("float32"))])
    assert {mistake.kind for mistake in result.trace.mistakes} <= kinds
    assert result.trace.mistakes


def test_threads_that_have_returned_need_not_reach_a_barrier(module: Module) -> None:
    result = run(module, "returned", [ArrayArgument((40,), np.dtype("float32")), 40])
    assert result.trace.mistakes == ()


@pytest.mark.parametrize(("name", "n", "reach"), [("goes_on", 40, 40), ("ends_sooner", 100, 36), ("goes_on", 64, 0)])
def test_threads_that_go_on_without_a_barrier_are_a_mistake(module: Module, name: str, n: int, reach: int) -> None:
    arrays = [ArrayArgument((128,), np.dtype("float32"))] * 2
    texts = [item.text for item in run(module, name, [*arrays, n]).trace.mistakes if item.kind == "barrier"]
    message = f"{reach} of the block's 64 threads reach this barrier; all must that have not returned"
    assert texts == [message] * bool(reach)


@pytest.mark.parametrize("n", [40, 64])
def test_threads_that_store_and_return_before_a_barrier_are_no_mistake(module: Module, n: int) -> None:
    arrays = [ArrayArgument((128,), np.dtype("float32"))] * 2
    assert run(module, "stores_and_returns", [*arrays, n]).trace.mistakes == ()


def test_threads_may_arrive_in_one_line_at_a_barrier_that_others_wait_at_in_another(module: Module) -> None:
    out = ArrayArgument((64,), np.dtype("float32"))
    assert run(module, "handed_over", [out]).trace.mistakes == ()
    (mistake,) = run(module, "not_handed_over", [out]).trace.mistakes
    assert (mistake.kind, mistake.text) == ("barrier", "32 threads reach this barrier, which waits for 64")


def test_a_register_may_be_called_like_a_part_of_a_special_one(module: Module) -> None:
    (mistake,) = run(module, "scoped", [ArrayArgument((64,), np.dtype("float32"))]).trace.mistakes
    assert mistake.text.startswith("thread 63 stores scoped_param_0[64]")


def test_addresses_that_depend_on_data_are_noted_and_with_data_followed(module: Module) -> None:
    index = np.arange(64, dtype=np.int32)[::-1].copy() * 2
    floats = ArrayArgument((128,), np.dtype("float32"))
    unknown = run(module, "gathered", [floats, floats, ArrayArgument((64,), np.dtype("int32")), 64])
    assert {item.what for item in unknown.trace.unfollowed} <= {"an address", "a branch"}
    assert {item.source for item in unknown.trace.unfollowed} == {"data of gathered_param_2"}
    known = run(module, "gathered", [floats, floats, ArrayArgument(index.shape, index.dtype, index), 64])
    assert known.trace.unfollowed == ()
    (load,) = (access for access in known.memory if (access.site.kind, access.site.array[-1]) == ("load", "1"))
    assert load.sectors == 8  # 32 lanes, two floats apart


def test_a_loop_over_data_that_was_not_given_is_left(module: Module) -> None:
    result = run(module, "halved", [FLOATS, ArrayArgument((1,), np.dtype("int32"))])
    assert [item.what for item in result.trace.unfollowed] == ["a branch"]


@pytest.mark.parametrize(
    ("name", "arguments", "what", "followed"),
    [("on_time", [], "a branch", 2), ("by_multiprocessor", [], "an address", 0), ("divided", [1], "an address", 1)],
)
def test_what_only_a_run_knows_is_not_followed(
    module: Module, name: str, arguments: list[Any], what: str, followed: int
) -> None:
    """Clocks, the number of the multiprocessor, and quotients by zero, here in the second of two warps."""
    result = run(module, name, [FLOATS, *arguments])
    (unfollowed,) = {(item.what, item.source) for item in result.trace.unfollowed}
    assert unfollowed == (what, "a value that only a run of the kernel has")
    assert sum(access.requests for access in result.memory) == followed
    assert "Every global access is fully coalesced." not in sentences(result)


def test_one_store_for_two_branches_has_the_line_where_its_value_is_loaded(module: Module) -> None:
    """The compiler gives it no line."""
    result = run(module, "either", [FLOATS, FLOATS, 100])
    first = 1 + SOURCE[: SOURCE.index("some[threadIdx.x] = in[threadIdx.x + t];")].count("\n")
    assert {mistake.kind: mistake.line for mistake in result.trace.mistakes} == {"race": first}
    assert {access.site.line for access in result.shared if access.site.kind == "store"} == {first}


def test_atomics_are_counted_whatever_part_of_the_array_they_update(module: Module) -> None:
    (traffic,) = run(module, "binned", [ArrayArgument((1000,), np.dtype("int32"))]).traffic
    assert (traffic.accesses, traffic.together) == (64, 5)  # 32 lanes, 7 elements


def test_an_index_far_outside_of_shared_memory_is_named(module: Module) -> None:
    result = run(module, "far", [ArrayArgument((64,), np.dtype("float32")), 10**6])
    assert [mistake.kind for mistake in result.trace.mistakes] == ["outside", "unwritten"]


def test_an_index_below_shared_memory_is_negative(module: Module) -> None:
    result = run(module, "far", [ArrayArgument((64,), np.dtype("float32")), -2])
    (first, *_) = [mistake.text for mistake in result.trace.mistakes if mistake.kind == "outside"]
    assert first == "thread 0 stores 4 bytes at byte -8 of shared memory, which has 256 bytes"


def test_an_asynchronous_copy_loads_from_global_memory_and_stores_to_shared(module: Module) -> None:
    result = run(
        module, "copied", [ArrayArgument((64,), np.dtype("float32")), ArrayArgument((256,), np.dtype("float32"))]
    )
    assert result.trace.mistakes == ()
    (store,) = (access for access in result.shared if access.site.way == "asynchronous")
    (load,) = (access for access in result.memory if access.site.way == "asynchronous")
    assert (store.wavefronts, load.sectors) == (4, 16)


@pytest.mark.parametrize("kernel", ["pipelined", "pipelined_all"])
def test_copies_that_are_waited_for(module: Module, kernel: str) -> None:
    floats = ArrayArgument((2048,), np.dtype("float32"))
    assert run(module, kernel, [floats, floats, 6]).trace.mistakes == ()


@pytest.mark.parametrize(("kernel", "kind"), [("waiting_for_one_less", "unwritten"), ("waiting_apart", "race")])
def test_copies_that_are_not(module: Module, kernel: str, kind: str) -> None:
    floats = ArrayArgument((2048,), np.dtype("float32"))
    mistakes = run(module, kernel, [floats, floats, 6]).trace.mistakes
    assert kind in {item.kind for item in mistakes}
    if kind == "unwritten":
        assert any("brings, for which nothing waits" in item.text for item in mistakes)


@pytest.mark.parametrize(
    ("kernel", "arguments", "words"),
    [
        ("shifted", (), "of block (0, 0, 0) loads in line"),
        ("shifted_volatile", (), "with nothing that orders blocks"),
        ("first_stores", (np.zeros(256, np.float32),), "stores an element of first_stores_param_0, which"),
        ("flag_within", (), ""),  # nor in shared memory
        ("swapped", (), "with no barrier between them"),
        ("swapped_in_turn", (), ""),
        ("doubled", (1000,), ""),
        ("last_block", (np.zeros(1, np.uint32),), ""),
    ],
)
def test_races_in_global_memory(module: Module, kernel: str, arguments: tuple[Any, ...], words: str) -> None:
    """Only where no atomic or fence can order blocks."""
    others = [from_python(item) for item in arguments]
    call = Call((4,), (64,), [ArrayArgument((1025,), np.dtype("float32")), *others])
    mistakes = explain_ptx(module.kernels[kernel], call, title=kernel, filename="mistakes.cu").trace.mistakes
    assert [item.kind for item in mistakes] == ["race"] * bool(words)
    assert all(words in item.text for item in mistakes)


def test_atomics_race_with_loads_and_not_with_each_other(module: Module) -> None:
    mistakes = run(module, "adds_twice", [ArrayArgument((64,), np.dtype("float32"))]).trace.mistakes
    assert [item.kind for item in mistakes] == ["race"]
    assert "adds to an element of some, which" in mistakes[0].text
    assert " loads in line " in mistakes[0].text


@pytest.mark.parametrize(
    ("kernel", "begin", "words"),
    [
        ("loads_pairs", 1, "thread 0 loads 8 bytes of loads_pairs_param_1 at byte 4 of its allocation"),
        ("loads_pairs", 2, ""),
        ("stores_fours", 6, "thread 6 stores 16 bytes of stores_fours_param_0 at byte 120 of its allocation"),
        ("stores_fours", 8, ""),
        ("loads_shared_pairs", 3, "thread 0 loads 8 bytes of some at byte"),
        ("loads_shared_pairs", 4, ""),
        ("adds_in_words", 2, "thread 0 updates 4 bytes of adds_in_words_param_0 at byte 2 of its allocation"),
    ],
)
def test_misaligned_addresses_are_named(module: Module, kernel: str, begin: int, words: str) -> None:
    floats = ArrayArgument((320,), np.dtype("float32"))
    result = run(module, kernel, [floats, floats, begin])
    mistakes = [item.text for item in result.trace.mistakes if item.kind != "race"]
    assert len(mistakes) == bool(words)
    assert all(text.startswith(words) and "misaligned: the address must be a multiple of" in text for text in mistakes)


def test_an_array_that_begins_inside_its_allocation_may_be_misaligned(module: Module) -> None:
    out = ArrayArgument((64,), np.dtype("float32"))
    for offset, kinds in ((4, ["misaligned"]), (8, [])):
        given = ArrayArgument((128,), np.dtype("float32"), offset=offset)
        mistakes = run(module, "loads_pairs", [out, given, 0]).trace.mistakes
        assert [item.kind for item in mistakes] == kinds


def test_what_is_not_traced_is_refused_by_name(module: Module) -> None:
    with pytest.raises(UsageError, match=r"textured, line \d+: tex\.1d\S* is not traced"):
        run(module, "textured", [FLOATS, 1])


def test_a_loop_without_an_end_is_told(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smembench.explain.ptx.machine.MOST_STEPS", 10_000)
    with pytest.raises(UsageError, match=r"endless, line \d+: a block runs more than"):
        run(module, "endless", [ArrayArgument((1,), np.dtype("int32"))])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([FLOATS], "summed: takes .* not 1 argument"),
        ([FLOATS, FLOATS, FLOATS, 1.0], "is no pointer"),
        ([FLOATS, FLOATS, np.float64(1), 1.0], "has 4 bytes; float64 has 8"),
        ([FLOATS, 2**64, 1.0, 1.0], "does not fit in 8 bytes"),
        ([FLOATS, FLOATS, 1j, 1.0], "is not taken for it"),
    ],
)
def test_arguments_that_a_kernel_does_not_take(module: Module, arguments: Sequence[Argument], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(module, "summed", arguments)
