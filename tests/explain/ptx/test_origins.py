"""Only contents that addresses and branches depend on are followed, and these whatever way an address takes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx_runs import parsed
from smembench.explain.ptx import needed as needing
from smembench.explain.ptx.content import GlobalArray
from smembench.explain.ptx.machine import Machine
from smembench.explain.ptx.memory import SPACING, Memory
from smembench.explain.ptx.merged import Merging
from smembench.explain.ptx.needed import MEMORY, needed
from smembench.explain.ptx.origins import ANYWHERE, origins
from smembench.explain.ptx.parse import parse
from smembench.explain.ptx.program import PtxKernel
from smembench.explain.ptx.records import Traced
from smembench.explain.ptx.registers import Launch
from smembench.toolchains.nvrtc import compile_source

SOURCE = r"""
__device__ unsigned counts[2];
extern "C" {
__global__ void last(const float* a, const unsigned* given, float* out) {
    __shared__ float tile[64];
    __shared__ unsigned turn;
    int t = threadIdx.x;
    tile[t] = a[t] + 1;
    if (t == 0) turn = atomicAdd(&counts[0], 1) + given[0];
    __syncthreads();
    if (turn % 2 == 0) out[t] = tile[63 - t];
    else out[t] = 0;
}
__global__ void indirect(const float* a, const unsigned* given, float* out) {
    __shared__ unsigned order[64];
    __shared__ float tile[64];
    int t = threadIdx.x;
    order[t] = given[t];
    tile[t] = a[t];
    __syncthreads();
    out[t] = tile[order[63 - t]];
}
__global__ void pointers(const float* a, const unsigned* given, float* out) {
    __shared__ float* rows[2];
    __shared__ float here[64], there[64];
    int t = threadIdx.x;
    if (t < 2) rows[t] = given[t] % 2 ? here : there;
    here[t] = given[t];
    there[t] = given[63 - t];
    __syncthreads();
    out[(int)rows[t % 2][t]] = 1;
}
__global__ void mixed(const float* a, const unsigned* given, float* out) {
    __shared__ unsigned* rows[2];
    __shared__ unsigned here[64], there[64];
    int t = threadIdx.x;
    if (t < 2) rows[t] = given[t] % 2 ? there : here;
    here[t] = given[t];
    there[t] = given[63 - t];
    __syncthreads();
    const unsigned* of = t % 4 ? rows[t % 2] : here;
    out[of[t]] = 1;
}
__global__ void scattered(const float* a, const unsigned* given, float* out) {
    __shared__ unsigned* rows[2];
    __shared__ unsigned here[64], there[64];
    int t = threadIdx.x;
    if (t < 2) rows[t] = given[t] % 2 ? there : here;
    here[t] = there[t] = 0;
    __syncthreads();
    rows[t % 2][t] = given[t];
    __syncthreads();
    out[here[t ^ 1]] = 1;
}
__global__ void chosen(const float* a, const unsigned* given, float* out) {
    __shared__ unsigned here[64], there[64];
    int t = threadIdx.x;
    here[t] = given[t];
    there[t] = given[63 - t];
    __syncthreads();
    const unsigned* of = given[0] % 2 ? here : there;
    out[of[t]] = a[t];
}
__global__ void carved(const float* a, const unsigned* given, float* out) {
    extern __shared__ float values[];
    extern __shared__ unsigned numbers[];
    int t = threadIdx.x;
    numbers[64 + t] = given[t];
    values[t] = a[t];
    __syncthreads();
    out[__float_as_uint(values[64 + (t ^ 1)])] = values[t];
}
__global__ void through(const float* a, unsigned* given, float* out) {
    int t = threadIdx.x;
    given[64 + t] = given[t] ^ 5;
    __syncthreads();
    out[given[64 + (t ^ 1)]] = a[t];
}
}
"""
NAMES = ("last", "indirect", "pointers", "mixed", "scattered", "chosen", "carved", "through")
THREADS = 64


@cache
def ptx(name: str) -> str:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC")
    return compile_source(SOURCE, Path("origins.cu"), "9.0", [name]).ptx


def kernel(name: str) -> PtxKernel:
    """Parsed anew, because runs change the contents of a module's variables."""
    return parse(ptx(name)).kernels[name]


def traced(name: str) -> Traced:
    rng, code = np.random.default_rng(1), kernel(name)
    numbers = np.concatenate([rng.permutation(THREADS), np.zeros(THREADS)]).astype(np.uint32)
    contents: list[NDArray[np.generic]] = [np.zeros(THREADS, np.float32), numbers, np.zeros(THREADS, np.float32)]
    parameters = {
        parameter.name: ((number + 1) * SPACING).to_bytes(8, "little")
        for number, parameter in enumerate(code.parameters)
    }
    arrays = [
        GlobalArray(item, (number + 1) * SPACING, content.nbytes, content.view(np.uint8) if number == 1 else None)
        for number, (item, content) in enumerate(zip(parameters, contents, strict=True))
    ]
    dynamic_bytes = 8 * THREADS if name == "carved" else 0
    memory = Memory(code, arrays, dynamic_bytes, parameters)
    launch = Launch((2, 1, 1), (THREADS, 1, 1), parameters, dynamic_bytes)
    return Machine(code, launch, memory, Merging({})).run((0, 0, 0))


@pytest.mark.parametrize("name", NAMES)
def test_accesses_are_as_if_everything_were_followed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = traced(name)
    anywhere = frozenset((ANYWHERE,))
    monkeypatch.setattr(
        needing, "origins", lambda kernel, pointers, memory: {id(given): anywhere for given in kernel.code}
    )
    everything = traced(name)
    assert followed.unfollowed == everything.unfollowed == set()
    assert len(followed.records) == len(everything.records) > 2
    for one, other in zip(followed.records, everything.records, strict=True):
        assert one.instruction == other.instruction
        assert np.array_equal(one.addresses, other.addresses)


def stored(name: str, *, data: bool = True) -> dict[str, bool]:
    """Whether what a kernel stores in each place is followed."""
    code = kernel(name)
    result = needed(code, [parameter.name for parameter in code.parameters], data=data)
    stores = [given for given in code.code if given.root in ("st", "atom") and not given.by_name]
    return {place: result.follows(given) for given in stores for place in result.reached[id(given)]}


@pytest.mark.parametrize(
    ("name", "followed", "left"),
    [
        ("last", ["turn", "counts"], ["tile", "last_param_2"]),
        ("indirect", ["order"], ["tile", "indirect_param_2"]),
        ("chosen", ["here", "there"], []),
        ("through", ["through_param_1"], []),
    ],
)
def test_what_nothing_depends_on_is_left(name: str, followed: list[str], left: list[str]) -> None:
    def of(part: str) -> bool:
        (result,) = {is_followed for place, is_followed in stored(name).items() if part in place}
        return result

    assert all(map(of, followed))
    assert not any(map(of, left))


def test_behind_an_address_that_was_loaded_everything_is_followed() -> None:
    assert all(stored("pointers").values())


def test_without_data_nothing_in_global_memory_is_followed() -> None:
    assert not stored("through", data=False)["through_param_1"]


def test_a_register_keeps_the_places_of_all_that_is_written_to_it() -> None:
    code = """.visible .entry k(.param .u64 n) {
        .shared .align 4 .b8 here[256]; .shared .align 4 .b8 there[256];
        .reg .b32 %r<4>; .reg .pred %p;
        mov.u32 %r1, there;
        bra MIDDLE;
        FIRST: mov.u32 %r1, here;
        MIDDLE: add.s32 %r2, %r1, 4;
        ld.shared.f32 %r3, [%r2];
        bra FIRST;
    }"""
    kernel = parsed(code).kernels["k"]
    (load,) = (given for given in kernel.code if given.root == "ld")
    assert origins(kernel, [], MEMORY)[id(load)] == {"here", "there"}
