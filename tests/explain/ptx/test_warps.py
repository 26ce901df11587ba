"""Shuffles, votes, matches and reductions against loops over lanes, after the text of the PTX ISA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptx_runs import Operand, computed
from smembench import UsageError

WORDS = st.integers(0, 2**32 - 1)
THREADS = st.sampled_from([1, 7, 32, 33, 50, 64, 96])
FULL = 0xFFFFFFFF


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The source lane and the predicate of ``shfl``."""
    count, clamp, segment = b & 31, c & 31, c >> 8 & 31
    most, least = (lane & segment) | (clamp & ~segment), lane & segment
    if mode == "up":
        j = lane - count
        inside = j >= most
    elif mode == "down":
        j = lane + count
        inside = j <= most
    elif mode == "bfly":
        j = lane ^ count
        inside = j <= most
    else:
        j = least | (count & ~segment)
        inside = j <= most
    return (j if inside else lane), inside


def clamps(mode: str, width: int) -> int:
    """The last operand of ``shfl`` for ``__shfl_*_sync`` with a width, as CUDA's header writes it."""
    return (32 - width) << 8 | (0 if mode == "up" else 31)


def uniform(kind: str, value: int, threads: int, alone: bool) -> Operand:
    return Operand(kind, [value] * threads, alone)


@given(
    mode=st.sampled_from(["up", "down", "bfly", "idx"]),
    width=st.sampled_from([32, 16, 8, 4, 2, 1]),
    counts=st.one_of(st.integers(0, 40), st.lists(WORDS, min_size=64, max_size=64)),
    clamp=st.one_of(st.none(), st.integers(0, 0x1FFF)),
    threads=st.sampled_from([32, 64]),
    targets=st.sampled_from(["%d0|%d1", "%d0", "_|%d1"]),
)
@settings(max_examples=80)
def test_a_shuffle_reads_the_lane_of_the_isa(
    mode: str, width: int, counts: int | list[int], clamp: int | None, threads: int, targets: str
) -> None:
    c = clamps(mode, width) if clamp is None else clamp
    values = [(thread * 0x9E3779B1 + 7) & FULL for thread in range(threads)]
    by = [counts] * threads if isinstance(counts, int) else counts[:threads]
    operands = [Operand("b32", values), Operand("b32", by, isinstance(counts, int)), uniform("b32", c, threads, True)]
    result = computed(f"shfl.sync.{mode}.b32 {targets}, %a0, %a1, %a2, -1", operands, ["b32", "pred"])
    for thread, (value, inside) in enumerate(result):
        source, expected = shuffled(mode, thread % 32, by[thread], c)
        if "%d0" in targets:
            assert value == values[thread // 32 * 32 + source], (mode, thread, by[thread], hex(c))
        if "%d1" in targets:
            assert bool(inside) == expected, (mode, thread, by[thread], hex(c))


@pytest.mark.parametrize(("mode", "width"), [*product(["up", "down", "bfly", "idx"], [32, 16, 8])])
def test_a_shuffle_is_that_of_cuda_c(mode: str, width: int) -> None:
    """As the CUDA programming guide tells what ``__shfl_*_sync`` returns."""
    for delta in range(width + 1):
        result = computed(
            f"shfl.sync.{mode}.b32 %d0|%d1, %a0, {delta}, {clamps(mode, width)}, -1",
            [Operand("b32", range(64))],
            ["b32", "pred"],
        )
        for thread, (value, _) in enumerate(result):
            inside = thread % width
            wanted = {
                "up": thread - delta if inside >= delta else thread,
                "down": thread + delta if inside + delta < width else thread,
                "idx": thread - inside + delta % width,
                "bfly": thread ^ delta if delta < width else thread,
            }[mode]
            if mode != "bfly" or delta < width:
                assert value == wanted, (thread, delta)


def test_a_shuffle_of_floats_and_uniform_registers_keeps_the_bits() -> None:
    result = computed(
        "shfl.sync.bfly.b32 %d0, %a0, 1, 31, -1", [Operand("f32", [0x3F800000 + n for n in range(32)])], ["f32"]
    )
    assert [bits for (bits,) in result] == [0x3F800000 + (n ^ 1) for n in range(32)]
    result = computed("shfl.sync.idx.b32 %d0, %a0, 3, 31, -1", [uniform("b32", FULL, 32, True)], ["b32"])
    assert {bits for (bits,) in result} == {FULL}


def warps(threads: int, active: Sequence[bool], members: Sequence[int]) -> list[list[int]]:
    """For each thread those of its warp that take part together with it."""
    return [
        [
            other
            for other in range(thread // 32 * 32, min(thread // 32 * 32 + 32, threads))
            if active[other] and members[thread] >> other % 32 & 1
        ]
        for thread in range(threads)
    ]


PARTS = st.sampled_from([1, 2, 4, 8, 16, 32])


@st.composite
def groups(draw: st.DrawFn) -> tuple[int, list[bool], list[int]]:
    """Threads, which of them are active, and the masks of parts of warps that vote among themselves."""
    threads, part = draw(THREADS), draw(PARTS)
    active = draw(st.one_of(st.just([True] * threads), st.lists(st.booleans(), min_size=threads, max_size=threads)))
    bits = (1 << part) - 1
    return threads, active, [bits << thread % 32 // part * part & FULL for thread in range(threads)]


def masked(threads: int, active: list[bool], members: list[int]) -> list[Operand]:
    """The predicate of a guard and the masks, as the last two operands."""
    return [Operand("pred", active), Operand("b32", members)]


@given(groups(), st.data())
@settings(max_examples=40)
def test_votes(group: tuple[int, list[bool], list[int]], data: st.DataObject) -> None:
    threads, active, _ = group
    some = st.lists(st.booleans(), min_size=threads, max_size=threads)
    values = data.draw(st.one_of(st.just([True] * threads), st.just([False] * threads), some))
    negated = data.draw(st.booleans())
    operands = [Operand("pred", values), *masked(*group)]
    source = "!%a0" if negated else "%a0"
    votes = [value != negated for value in values]
    together = warps(*group)
    for mode in ("any", "all", "uni", "ballot"):
        kind = "b32" if mode == "ballot" else "pred"
        result = computed(f"@%a1 vote.sync.{mode}.{kind} %d0, {source}, %a2", operands, [kind])
        for thread, (got,) in enumerate(result):
            if not active[thread]:
                continue
            mine = [votes[other] for other in together[thread]]
            wanted = {
                "any": any(mine),
                "all": all(mine),
                "uni": len(set(mine)) == 1,
                "ballot": sum(1 << other % 32 for other in together[thread] if votes[other]),
            }[mode]
            assert got == wanted, (mode, thread)


@given(groups())
@settings(max_examples=30)
def test_the_active_mask_and_the_elected_thread(group: tuple[int, list[bool], list[int]]) -> None:
    threads, active, _ = group
    every = warps(threads, active, [FULL] * threads)
    together = warps(*group)
    result = computed("@%a0 activemask.b32 %d0", masked(*group)[:1], ["b32"])
    elected = computed("@%a0 elect.sync %d0|%d1, %a1", masked(*group), ["b32", "pred"])
    for thread in range(threads):
        if active[thread]:
            assert result[thread] == (sum(1 << other % 32 for other in every[thread]),)
            assert elected[thread] == (together[thread][0] % 32, thread == together[thread][0])


@given(groups(), st.data())
@settings(max_examples=40)
def test_matches(group: tuple[int, list[bool], list[int]], data: st.DataObject) -> None:
    threads, active, _ = group
    kind = data.draw(st.sampled_from(["b32", "b64"]))
    large = [0, 1, 2**31, 2**32 - 1] + ([2**32, 2**63] if kind == "b64" else [])
    values = data.draw(
        st.one_of(
            st.lists(st.sampled_from(large), min_size=threads, max_size=threads),
            st.builds(lambda value: [value] * threads, st.sampled_from(large)),
        )
    )
    operands = [Operand(kind, values), *masked(*group)]
    some = computed(f"@%a1 match.any.sync.{kind} %d0, %a0, %a2", operands, ["b32"])
    every = computed(f"@%a1 match.all.sync.{kind} %d0|%d1, %a0, %a2", operands, ["b32", "pred"])
    for thread, together in enumerate(warps(*group)):
        if active[thread]:
            alike = [other for other in together if values[other] == values[thread]]
            assert some[thread] == (sum(1 << other % 32 for other in alike),)
            wanted = sum(1 << other % 32 for other in together) if alike == together else 0
            assert every[thread] == (wanted, alike == together)


REDUCED: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "min": min, "max": max, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}  # fmt: skip


@given(groups(), st.data())
@settings(max_examples=40)
def test_reductions(group: tuple[int, list[bool], list[int]], data: st.DataObject) -> None:
    threads, active, _ = group
    values = data.draw(st.lists(WORDS, min_size=threads, max_size=threads))
    name = data.draw(st.sampled_from([*REDUCED]))
    kind = data.draw(st.sampled_from(["u32", "s32"])) if name in ("add", "min", "max") else "b32"
    numbers = [value - 2**32 if kind == "s32" and value >> 31 else value for value in values]
    result = computed(
        f"@%a1 redux.sync.{name}.{kind} %d0, %a0, %a2", [Operand("b32", values), *masked(*group)], ["b32"]
    )
    for thread, together in enumerate(warps(*group)):
        if active[thread]:
            wanted = reduce(REDUCED[name], [numbers[other] for other in together])
            assert result[thread] == (wanted & FULL,), (name, kind, thread)


def test_reductions_of_floats_are_refused() -> None:
    with pytest.raises(UsageError, match=r"redux\.sync\.min\.f32 is not traced"):
        computed("redux.sync.min.f32 %d0, %a0, -1", [Operand("f32", [0])], ["f32"])


def test_the_masks_of_lanes() -> None:
    wanted: dict[str, Callable[[int], int]] = {
        "eq": lambda lane: 1 << lane,
        "lt": lambda lane: (1 << lane) - 1,
        "le": lambda lane: (2 << lane) - 1,
        "gt": lambda lane: FULL ^ ((2 << lane) - 1),
        "ge": lambda lane: FULL ^ ((1 << lane) - 1),
    }
    for name, mask in wanted.items():
        result = computed(f"mov.u32 %d0, %lanemask_{name}", [Operand("b32", range(50))], ["b32"])
        assert [bits for (bits,) in result] == [mask(thread % 32) for thread in range(50)]
