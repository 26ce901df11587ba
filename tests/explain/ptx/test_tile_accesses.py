"""Tiles and waits of kernels in CUDA C++: bulk copies, tensor maps, wgmma, wmma, barriers in shared memory, flags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.explain.costs import Costs
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import Module, parse
from smembench.explain.ptx.tile_accesses import decoded
from smembench.explain.tiles import core_matrices
from smembench.kernels.intrinsics.bulk_copy import places_in_tile
from smembench.launches.arguments import parsed
from smembench.launches.array_argument import Argument
from smembench.model.errors import UsageError
from smembench.toolchains.nvrtc import compile_source

pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = r"""
#define SHARED(x) ((unsigned)__cvta_generic_to_shared(x))
typedef unsigned long long u64;
struct __align__(64) Map { char bytes[128]; };
__device__ void setup(u64 *barrier, int arrivals) {
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(SHARED(barrier)), "r"(arrivals));
    __syncthreads();
}
__device__ void announce(u64 *barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(SHARED(barrier)), "r"(bytes) : "memory");
}
__device__ void wait(u64 *barrier, int parity) {
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], %1; @!p bra again; }"
                 :: "r"(SHARED(barrier)), "r"(parity) : "memory");
}
__device__ void copy_row(void *to, const void *of, int bytes, u64 *barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(SHARED(to)), "l"(of), "r"(bytes), "r"(SHARED(barrier)) : "memory");
}
__device__ void copy_box(void *to, const void *map, int x, int y, u64 *barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 :: "r"(SHARED(to)), "l"(map), "r"(x), "r"(y), "r"(SHARED(barrier)) : "memory");
}
template <int ANNOUNCED, int WAITS> __device__ void row(float *out, const float *in) {
    __shared__ alignas(16) float tile[256];
    __shared__ u64 barrier;
    setup(&barrier, 1);
    if (threadIdx.x == 0) {
        announce(&barrier, ANNOUNCED);
        copy_row(tile, in + blockIdx.x * 256, 1024, &barrier);
    }
    if (WAITS) wait(&barrier, 0);
    out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x * 8];
}
extern "C" __global__ void row_copied(float *out, const float *in) { row<1024, 1>(out, in); }
extern "C" __global__ void row_short(float *out, const float *in) { row<1040, 1>(out, in); }
extern "C" __global__ void row_early(float *out, const float *in) { row<1024, 0>(out, in); }
__device__ void box(float *out, const void *map, int x, int y) {
    __shared__ alignas(1024) float tile[64 * 32];
    __shared__ u64 barrier;
    setup(&barrier, 1);
    if (threadIdx.x == 0) {
        announce(&barrier, sizeof(tile));
        copy_box(tile, map, x, y, &barrier);
    }
    wait(&barrier, 0);
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void box_copied(float *out, const __grid_constant__ Map map) {
    box(out, &map, blockIdx.x * 32, blockIdx.y * 64);
}
extern "C" __global__ void box_by_pointer(float *out, const Map *map) {
    box(out, map, blockIdx.x * 32, blockIdx.y * 64);
}
extern "C" __global__ void box_turned(float *out, const __grid_constant__ Map map) {
    box(out, &map, blockIdx.y * 64, blockIdx.x * 32);
}
extern "C" __global__ void specialised(float *out, const float *in, int steps) {  // a ring of two tiles
    __shared__ alignas(16) float tiles[2][256];
    __shared__ u64 full[2], empty[2];
    for (int i = 0; i < 2; i++) { setup(&full[i], 1); setup(&empty[i], 64); }
    if (threadIdx.x == 64) {
        for (int i = 0; i < steps; i++) {
            wait(&empty[i % 2], i / 2 % 2 ^ 1);
            announce(&full[i % 2], 1024);
            copy_row(tiles[i % 2], in + i * 256, 1024, &full[i % 2]);
        }
    } else if (threadIdx.x < 64) {
        for (int i = 0; i < steps; i++) {
            wait(&full[i % 2], i / 2 % 2);
            out[i * 64 + threadIdx.x] = tiles[i % 2][threadIdx.x * 4];
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(SHARED(&empty[i % 2])) : "memory");
        }
    }
}
extern "C" __global__ void flagged(float *out, volatile int *flags) {  // waits for the block before
    if (threadIdx.x == 0 && blockIdx.x > 0) while (flags[blockIdx.x - 1] == 0);
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) flags[blockIdx.x] = 1;
}
extern "C" __global__ void flag_in_shared(float *out) {
    __shared__ volatile int flag;
    if (threadIdx.x == 0) flag = 0;
    __syncthreads();
    if (threadIdx.x < 32) { while (flag == 0); out[threadIdx.x] = 1; }
    else flag = 1;
}
"""


@pytest.fixture(scope="module")
def module() -> Module:
    return parse(compile_source(SOURCE, Path("tiles.cu"), "9.0", []).ptx)


def run(module: Module, kernel: str, arguments: Sequence[str], block: int = 32, grid: tuple[int, ...] = (4,)) -> Costs:
    given: list[Argument] = [parsed(text) for text in arguments]
    return explain_ptx(module.kernels[kernel], Call(grid, (block,), given), title=kernel, filename="tiles.cu")


def kinds(costs: Costs) -> list[str]:
    return [mistake.kind for mistake in costs.trace.mistakes]


def test_a_bulk_copy_moves_a_row(module: Module) -> None:
    costs = run(module, "row_copied", ["float32[128]", "float32[1024]"])
    (tile,) = costs.tiles
    assert (tile.access.kind, tile.count, tile.shared_bytes, tile.global_bytes) == ("copy", 4, 4096, 4096)
    assert (kinds(costs), costs.trace.unfollowed) == ([], ())
    (load,) = (item for item in costs.shared if item.site.kind == "load" and item.site.array == "tile")
    assert load.wavefronts == 8


def test_a_wait_for_bytes_that_do_not_come_ends_with_a_reason(module: Module) -> None:
    costs = run(module, "row_short", ["float32[128]", "float32[1024]"])
    (mistake,) = costs.trace.mistakes
    assert mistake.kind == "barrier"
    assert mistake.text.endswith("lacks 0 of 1 arrivals and 16 bytes")


def test_a_tile_that_is_read_before_it_has_come_is_a_race(module: Module) -> None:
    assert kinds(run(module, "row_early", ["float32[128]", "float32[1024]"])) == ["race"]


@pytest.mark.parametrize("kernel", ["box_copied", "box_by_pointer"])
def test_boxes_of_a_tensor_map(module: Module, kernel: str) -> None:
    """60 x 250 elements: of the second column of boxes 28 elements are inside, of the fourth row of boxes 58."""
    costs = run(module, kernel, ["float32[32]", "tensormap(float32[250,60], box 32x64, swizzle 128)"], grid=(2, 4))
    (tile,) = costs.tiles
    rows = np.arange(250) * 240
    sectors = sum(
        int(((rows + begin + width - 1) // 32 - (rows + begin) // 32 + 1).sum())
        for begin, width in ((0, 128), (128, 112))
    )
    assert (tile.count, tile.shared_bytes, tile.global_bytes) == (8, 8 * 64 * 128, 32 * sectors)
    assert kinds(costs) == []


def test_boxes_outside_of_their_tensor_are_a_mistake(module: Module) -> None:
    costs = run(
        module, "box_turned", ["float32[32]", "tensormap(float32[256,64], box 32x64, swizzle 128)"], grid=(2, 4)
    )
    assert [(item.kind, item.text) for item in costs.trace.mistakes] == [
        ("outside", "6 of 8 boxes lie outside of box_turned_param_1; their elements are zeros")
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tensormap(float32[256,64], box 32)", "as many dimensions"),
        ("tensormap(float32[256,64], box 64x64, swizzle 128)", "256 bytes, more than the swizzle"),
        ("tensormap(float32[256,63], box 32x64)", "multiples of 16 bytes"),
        ("tensormap(float32[256,64], box 32x512)", "1 to 256 elements"),
        ("tensormap(float32[256,64], box 32x64, swizzle 96)", "one of 0, 32, 64, 128"),
        ("tensormap(float99[256,64], box 32x64)", "write tensormap"),
        ("tensormap(float32[256,64])", "write tensormap"),
    ],
)
def test_tensor_maps_that_cannot_be(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parsed(text)


def test_a_producer_and_consumers_take_turns(module: Module) -> None:
    costs = run(module, "specialised", ["float32[640]", "float32[2560]", "10"], block=96, grid=(1,))
    assert (kinds(costs), costs.trace.unfollowed) == ([], ())
    (tile,) = costs.tiles
    assert tile.count == 10
    (load,) = (item for item in costs.shared if item.site.kind == "load" and item.site.array == "tiles")
    assert (load.requests, load.wavefronts) == (20, 4)


def test_flags_of_other_blocks_let_threads_go_on(module: Module) -> None:
    costs = run(module, "flagged", ["float32[128]", "int32[4]"])
    assert (kinds(costs), costs.trace.unfollowed) == ([], ())
    assert sum(item.requests for item in costs.memory if item.site.kind == "store") == 8
    assert {item.site.way for item in costs.memory if item.site.kind == "load"} == {"waiting"}


def test_a_flag_in_shared_memory_is_waited_for(module: Module) -> None:
    costs = run(module, "flag_in_shared", ["float32[32]"], block=64, grid=(1,))
    (store,) = (item for item in costs.memory if item.site.kind == "store")
    assert store.requests == 1
    assert costs.trace.unfollowed == ()


@given(st.sampled_from([32, 64, 128]), st.integers(0, 100), st.sampled_from([8, 64, 256]))
def test_a_descriptor_states_where_a_swizzled_operand_lies(swizzle: int, tile: int, columns: int) -> None:
    """The first 32 bytes of each row of a tile, chunk c of row r in the place of another, as the TMA leaves them."""
    bits = {128: 1, 64: 2, 32: 3}[swizzle] << 62 | (8 * swizzle // 16) << 32 | 1 << 16 | tile * 1024 // 16
    operand, start = decoded(bits, "B", columns, 0)
    assert (start, operand.rows, operand.row_bytes, operand.swizzle) == (tile * 1024, columns, 32, swizzle)
    result = {address - start for rows in core_matrices(operand, start) for address in rows}
    at = np.arange(columns)[:, None] * swizzle + np.array([0, 16])
    assert result == {int(place) for place in (at ^ at // 128 % (swizzle // 16) * 16).ravel()}
    if swizzle == 128:
        assert result == {
            int(place) for place in 2 * places_in_tile(2, np.arange(columns)[:, None], np.array([0, 8])).ravel()
        }


def test_a_transposed_operand_without_a_swizzle_exchanges_its_strides() -> None:
    operand, _ = decoded(128 // 16 << 32 | 1024 // 16 << 16, "B", 64, 16)
    assert (operand.rows, operand.row_bytes, operand.leading, operand.stride) == (16, 128, 128, 1024)


WMMA = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b64 %g; .reg .b32 %r<9>; .shared .align 128 .b8 tile[8192];
    ld.param.u64 %g, [p];
    mov.u32 %r0, tile;
    OPCODE;
    ret;
}
"""


@pytest.mark.parametrize(
    ("opcode", "requests", "wavefronts"),
    [
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {REGISTERS}, [%r0], 64", 1, 32),  # rows 128 bytes apart
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {REGISTERS}, [%r0], 72", 1, 4),  # and with a pad
        ("wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {REGISTERS}, [%r0]", 1, 8),  # 32 bytes apart
        ("wmma.load.a.sync.aligned.row.m32n8k16.shared.f16 {REGISTERS}, [%r0], 72", 2, 8),
        ("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r0], {REGISTERS}, 16", 4, 16),
        ("wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [%r0], {REGISTERS}, 16", 8, 32),
    ],
)
def test_fragments_of_wmma(opcode: str, requests: int, wavefronts: int) -> None:
    registers = ", ".join(f"%r{number}" for number in range(1, 9))
    text = WMMA.replace("OPCODE", opcode.replace("REGISTERS", registers))
    costs = run(parse(text), "k", ["float32[8]"], grid=(1,))
    (access,) = costs.shared
    assert (access.requests, access.of_all) == (requests, wavefronts)


def test_types_whose_fragments_are_not_known_are_refused() -> None:
    text = WMMA.replace("OPCODE", "wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%r1, %r2, %r3, %r4}, [%r0]")
    with pytest.raises(UsageError, match=r"wmma\.load\.a\.\S+\.tf32 is not traced"):
        run(parse(text), "k", ["float32[8]"])
