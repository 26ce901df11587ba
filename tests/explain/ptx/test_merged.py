"""What machine code makes of a PTX kernel's accesses: merged ones, and those of warps without an active lane."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.explain.ptx.machine import Machine
from smembench.explain.ptx.memory import Memory
from smembench.explain.ptx.merged import merging, widened
from smembench.explain.ptx.parse import parse
from smembench.explain.ptx.registers import Launch
from smembench.explain.requests import NOWHERE
from smembench.toolchains.memory_instructions import MemoryInstruction
from smembench.toolchains.source_lines import Lined

THREADS = 96
LOOP = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 words, .param .u32 from)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .shared .align 16 .b8 tile[65536];
    .loc 1 3 0
    ld.param.u32 %r0, [words];
    ld.param.u32 %r1, [from];
    mov.u32 %r2, tile;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r2, %r3, 512, %r2;
    shl.b32 %r1, %r1, 2;
    add.u32 %r2, %r2, %r1;
    mov.u32 %r4, 0;
again:
    .loc 1 7 0
    ld.shared.u32 %r5, [%r2];
    add.u32 %r2, %r2, 4;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p, %r4, %r0;
    @%p bra again;
    ret;
}
"""
SKIPPED = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 most)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .shared .align 16 .b8 tile[4096];
    ld.param.u32 %r0, [most];
    mov.u32 %r2, tile;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, 0;
again:
    setp.ge.u32 %p, %r3, %r0;
    @%p bra past;
    .loc 1 7 0
    st.shared.u32 [%r2], %r3;
past:
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p, %r4, 3;
    @%p bra again;
    ret;
}
"""


def lined(kind: str, width: int, *, guarded: bool = False) -> Lined:
    return Lined(7, frozenset(), MemoryInstruction("shared", kind, width, guarded=guarded))


def machine(source: str, result: list[Lined], **values: int) -> Machine:
    kernel = parse(source).kernels["k"]
    parameters = {name: value.to_bytes(4, "little") for name, value in values.items()}
    launch = Launch((1, 1, 1), (THREADS, 1, 1), parameters)
    return Machine(kernel, launch, Memory(kernel, [], 0), merging(kernel, result))


@given(words=st.integers(1, 40), first=st.integers(0, 8), codes=st.sampled_from([{16}, {4, 16}, {8}, {4, 8}]))
def test_loads_of_several_iterations_are_merged_where_they_fill_aligned_words(
    words: int, first: int, codes: set[int]
) -> None:
    result = [lined("load", width) for width in codes]
    plan = merging(parse(LOOP).kernels["k"], result)
    assert plan.across == {(7, "shared", "load"): max(codes)}
    assert not plan.unmatched
    records = widened(machine(LOOP, result, words=words, **{"from": first}).run((0, 0, 0)).records, plan.across)
    words_of_wide = max(codes) // 4
    whole = max((first + words) // words_of_wide - -(-first // words_of_wide), 0)
    single = words - whole * words_of_wide
    assert Counter(item.width for item in records) == Counter({max(codes): whole, 4: single})
    of_last = {int(item.addresses[-1]) + at for item in records for at in range(0, item.width, 4)}
    assert len(of_last) == words


@pytest.mark.parametrize("codes", [[16, 8], [2], [32]])
def test_other_widths_are_not_explained_by_merging(codes: list[int]) -> None:
    plan = merging(parse(LOOP).kernels["k"], [lined("load", width) for width in codes])
    assert (plan.across, plan.unmatched) == ({}, (("shared", "load"),))


@pytest.mark.parametrize("most", [0, 1, 32, 40, 64, 96, 200])
@pytest.mark.parametrize("guarded", [True, False])
def test_warps_whose_lanes_all_skip_an_access_issue_it_if_it_is_guarded(most: int, guarded: bool) -> None:
    result = machine(SKIPPED, [lined("store", 4, guarded=guarded)], most=most).run((0, 0, 0))
    warps = np.arange(THREADS) // 32
    idle = [set(warps[item.addresses != NOWHERE]) for item in result.records if item.space == "branch"]
    made = [set(warps[item.addresses != NOWHERE]) for item in result.records if item.space == "shared"]
    expected = THREADS // 32 - -(-min(most, THREADS) // 32)
    assert sum(map(len, idle)) == (3 * expected if guarded else 0)
    assert sum(map(len, made)) == 3 * (THREADS // 32 - expected)
