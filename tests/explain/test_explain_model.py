from __future__ import annotations

import csv
import math
import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.explain.banks import (
    bank_of,
    conflict_degree,
    ideal_wavefronts,
    is_broadcast,
    lanes_together,
    served,
    wavefronts,
)
from smembench.explain.coalescing import efficiency, ideal_sectors, sectors
from smembench.explain.occupancy import Occupancy, occupancy

Addresses = list[int | None]
Request = tuple[Addresses, int, str]

LANES_TOGETHER = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}
CAPABILITIES = ["7.0", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "12.0"]


@st.composite
def requests(draw: st.DrawFn, most: int = 32) -> Request:
    width = draw(st.sampled_from(sorted(LANES_TOGETHER)))
    # A small range makes shared words likely, a stride of a bank's row makes conflicts likely.
    stride = draw(st.sampled_from([width, 128]))
    place = st.integers(0, draw(st.sampled_from([3, 40, 5000]))).map(lambda i: i * stride)
    lanes = draw(st.lists(st.none() | place, min_size=0, max_size=most))
    if draw(st.booleans()):  # lanes that share addresses in pairs, but for a few
        other, alone = draw(st.sampled_from([1, 2])), draw(st.sets(st.integers(0, 31), max_size=1))
        lanes = [lanes[min(lane, lane ^ other)] if lane not in alone else at for lane, at in enumerate(lanes)]
    return lanes, width, draw(st.sampled_from(["load", "store"]))


def counted_requests() -> list[tuple[Addresses, int, str, int]]:
    """Loads and stores of random patterns, and the wavefronts that GPUs counted for them: see .ci/warp_requests."""
    stored = (Path(__file__).parents[2] / "results/reference").glob("*-shared-requests*.csv")
    return [
        (
            [int(row[f"lane{lane}"]) if row[f"lane{lane}"] else None for lane in range(32)],
            int(row["width_bytes"]),
            row["kind"],
            int(row["wavefronts"]),
        )
        for file in sorted(stored)
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines())
        if row["kind"] in ("load", "store")
    ]


def test_the_rule_of_wide_accesses_has_no_exception_among_what_gpus_counted() -> None:
    result = counted_requests()
    wrong = [(at, width, kind) for at, width, kind, counted in result if wavefronts(at, width, kind) != counted]
    assert wrong == []
    # Each half of the rule decides some of them.
    kinds = {(width, kind, lanes_together(at, width, kind)) for at, width, kind, _ in result}
    assert kinds >= {(8, "load", 16), (8, "load", 32), (16, "load", 8), (16, "load", 16), (8, "store", 16)}
    assert len(result) >= 1350


def column(width: int, pitch: int) -> Addresses:
    return [lane * pitch * width for lane in range(32)]


def in_pairs(addresses: Addresses, other: int) -> bool:
    whole = [*addresses, *[None] * 32]
    return all(len({whole[lane], whole[lane ^ other]} - {None}) < 2 for lane in range(32))


def brute_force_wavefronts(addresses: Addresses, width: int, kind: str) -> int:
    """Play the hardware: in each wavefront of a part every bank hands out one of its outstanding words."""
    together = LANES_TOGETHER[width]
    if width > 4 and kind == "load" and (in_pairs(addresses, 1) or in_pairs(addresses, 2)):
        together *= 2
    count, rest = 0, iter(addresses)
    while part := list(islice(rest, together)):
        touched = [byte // 4 for address in part if address is not None for byte in range(address, address + width)]
        outstanding: dict[int, list[int]] = {}
        for word in dict.fromkeys(touched):
            outstanding.setdefault(word % 32, []).append(word)
        while any(outstanding.values()):
            count += 1
            for words in outstanding.values():
                del words[:1]
    return count


@given(requests())
def test_wavefronts_agree_with_a_simulation_of_the_banks(request_: Request) -> None:
    assert wavefronts(*request_) == brute_force_wavefronts(*request_)


@given(requests())
def test_each_lane_is_served_once_and_no_bank_twice_at_once(request_: Request) -> None:
    addresses, width, kind = request_
    result = served(addresses, width, kind)
    assert len(result) == wavefronts(addresses, width, kind)
    lanes = [lane for lane, address in enumerate(addresses) if address is not None]
    assert sorted(lane for wavefront in result for lane in wavefront) == lanes
    for wavefront in result:
        starts = (address for lane in wavefront if (address := addresses[lane]) is not None)
        words = {byte // 4 for start in starts for byte in range(start, start + width, 4)}
        assert len({word % 32 for word in words}) == len(words) > 0


@given(requests(), st.randoms(use_true_random=False))
def test_the_order_of_lanes_within_a_part_does_not_matter(request_: Request, rng: random.Random) -> None:
    addresses, width, _ = request_
    together = LANES_TOGETHER[width]
    shuffled: Addresses = []
    for start in range(0, len(addresses), together):
        part = addresses[start : start + together]
        shuffled += rng.sample(part, len(part))
    for figure in (wavefronts, ideal_wavefronts):
        assert figure(shuffled, width, "store") == figure(addresses, width, "store")


@given(requests(most=31))
def test_an_inactive_lane_more_changes_nothing(request_: Request) -> None:
    addresses, width, kind = request_
    for cost in (wavefronts, ideal_wavefronts, conflict_degree):
        assert cost([*addresses, None], width, kind) == cost(addresses, width, kind)
    for figure in (is_broadcast, sectors, ideal_sectors, efficiency):
        assert figure([*addresses, None], width) == figure(addresses, width)


@given(st.integers(1, 200), st.integers(0, 1000))
def test_a_stride_of_words_conflicts_by_its_common_divisor_with_the_banks(stride: int, offset: int) -> None:
    assert wavefronts([4 * (offset + lane * stride) for lane in range(32)], 4, "load") == math.gcd(stride, 32)


@pytest.mark.parametrize(
    ("width", "pitch", "expected", "degree"),
    [
        (4, 32, 32, 32),  # a column of the float32 tile: every word in one bank
        (4, 33, 1, 1),
        (8, 32, 32, 16),  # float64: the 16 lanes of a half share two banks
        (8, 33, 2, 1),
        (16, 32, 32, 8),
        (16, 33, 4, 1),
        (2, 32, 16, 16),  # rows of 16 words: two banks, 16 words each
        (1, 32, 8, 8),  # rows of 8 words: four banks, 8 words each
        (1, 1, 1, 1),
    ],
)
def test_columns_of_a_tile(width: int, pitch: int, expected: int, degree: float) -> None:
    assert wavefronts(column(width, pitch), width, "load") == expected
    assert conflict_degree(column(width, pitch), width, "load") == degree


@pytest.mark.parametrize(("width", "full"), [(1, 1), (2, 1), (4, 1), (8, 2), (16, 4)])
def test_rows_and_broadcasts_are_free_of_conflicts(width: int, full: int) -> None:
    row, same = column(width, 1), [64] * 32
    assert wavefronts(row, width, "load") == ideal_wavefronts(row, width, "load") == full
    assert wavefronts(same, width, "store") == full
    assert wavefronts(same, width, "load") == (full + 1) // 2  # all lanes n and n^1 have equal addresses
    assert is_broadcast(same, width)
    assert not is_broadcast(row, width)


def test_fewer_parts_with_active_lanes_need_fewer_wavefronts() -> None:
    upper_half = [None] * 16 + [8 * lane for lane in range(16)]
    assert wavefronts(upper_half, 8, "load") == ideal_wavefronts(upper_half, 8, "load") == 1
    lanes_0_and_31 = [0, *[None] * 30, 0]  # no lane n and n^1 that are both active differ
    assert ideal_wavefronts(lanes_0_and_31, 16, "load") == wavefronts(lanes_0_and_31, 16, "load") == 2


def test_a_request_without_active_lanes_costs_nothing() -> None:
    for none in ([], [None] * 32):
        assert wavefronts(none, 4, "load") == ideal_wavefronts(none, 4, "store") == 0
        assert sectors(none, 4) == ideal_sectors(none, 4) == 0
        assert conflict_degree(none, 4, "load") == efficiency(none, 4) == 1
        assert not is_broadcast(none, 4)


def test_a_broadcast_takes_two_lanes_in_one_word() -> None:
    assert not is_broadcast([4], 4)
    assert is_broadcast([4, None, 5], 1)
    assert not is_broadcast([3, 4], 1)
    assert not is_broadcast([0, 8], 8)


def test_banks_repeat_every_128_bytes() -> None:
    assert [bank_of(address) for address in (0, 3, 4, 127, 128, 132)] == [0, 0, 1, 31, 0, 1]
    with pytest.raises(ValueError, match="negative"):
        bank_of(-4)


@pytest.mark.parametrize(
    ("addresses", "width", "why"),
    [
        ([0], 3, "one of"),
        ([0], 32, "one of"),
        ([0], 0, "one of"),
        ([0, 6], 4, "lane 1.*multiple of 4"),
        ([8], 16, "multiple of 16"),
        ([None, -4], 4, "lane 1.*negative"),
        ([0] * 33, 4, "32 lanes, not 33"),
    ],
)
def test_requests_that_no_warp_can_make(addresses: Sequence[int | None], width: int, why: str) -> None:
    for cost in (wavefronts, ideal_wavefronts, conflict_degree):
        with pytest.raises(ValueError, match=why):
            cost(addresses, width, "load")
    for figure in (is_broadcast, sectors, ideal_sectors, efficiency):
        with pytest.raises(ValueError, match=why):
            figure(addresses, width)


@given(requests())
def test_sectors_agree_with_a_count_of_bytes(request_: Request) -> None:
    addresses, width, _ = request_
    asked = {byte for address in addresses if address is not None for byte in range(address, address + width)}
    moved = {byte for asked_byte in asked for byte in range(asked_byte & ~31, (asked_byte | 31) + 1)}
    assert sectors(addresses, width) == len(moved) / 32
    assert ideal_sectors(addresses, width) == math.ceil(len(asked) / 32)
    assert ideal_sectors(addresses, width) <= sectors(addresses, width)
    assert efficiency(addresses, width) == pytest.approx(len(asked) / len(moved) if moved else 1)
    assert sectors(addresses, width, "asynchronous") == sectors(addresses, width) or width == 16


@pytest.mark.parametrize(("first", "plain", "copied"), [(0, 16, 16), (16, 17, 20), (48, 17, 20), (96, 16, 16)])
def test_sectors_of_a_row_that_a_warp_copies_past_the_l1(first: int, plain: int, copied: int) -> None:
    """Its pairs of lanes move 32 bytes at once, wherever they begin, unless a line ends between the two."""
    row = [first + 16 * lane for lane in range(32)]
    assert (sectors(row, 16), sectors(row, 16, "asynchronous")) == (plain, copied)
    assert efficiency(row, 16, "asynchronous") == 16 / copied


@pytest.mark.parametrize(
    ("capability", "threads", "shared", "registers", "blocks", "warps", "limiter"),
    [
        ("9.0", 1024, 4224, 16, 2, 64, "threads"),
        ("9.0", 256, 0, 32, 8, 64, "threads"),  # registers are as tight: 8 × 256 × 32 = 64 K
        ("9.0", 256, 48 * 1024, None, 4, 32, "shared memory"),  # 4 × (48 + 1) KiB of 228
        ("9.0", 32, 0, None, 32, 32, "blocks"),
        ("9.0", 33, 0, None, 32, 64, "threads"),  # a begun warp counts whole
        ("9.0", 256, 227 * 1024, None, 1, 8, "shared memory"),
        ("9.0", 32, 0, 48, 32, 32, "blocks"),  # 40 warps by registers: 10 in each partition, not 42 in all
        ("9.0", 64, 0, 48, 20, 40, "registers"),
        ("9.0", 256, 0, 33, 6, 48, "registers"),  # 33 × 32 rounds up to 1280: 12 warps a partition
        ("9.0", 1024, 0, 64, 1, 32, "registers"),
        ("9.0", 64, 7296, None, 28, 56, "shared memory"),  # 65 × 128 bytes with what is reserved: steps of 128
        ("12.0", 1024, 4224, 16, 1, 32, "threads"),  # 48 warps: the second block does not fit
        ("12.0", 128, 8 * 1024, None, 11, 44, "shared memory"),  # 11 × 9 KiB of 100
        ("8.6", 256, 33 * 1024, 32, 2, 16, "shared memory"),
        ("8.7", 256, 33 * 1024, 32, 4, 32, "shared memory"),
        ("8.0", 256, 40 * 1024, 32, 4, 32, "shared memory"),  # 4 × 41 KiB is all of 164
        ("7.0", 256, 48 * 1024, 32, 2, 16, "shared memory"),  # nothing is reserved before 8.0
        ("7.0", 64, 3 * 1024 + 1, None, 29, 58, "shared memory"),  # in steps of 256 bytes
    ],
)
def test_known_occupancies(
    capability: str, threads: int, shared: int, registers: int | None, blocks: int, warps: int, limiter: str
) -> None:
    result = occupancy(capability, threads, shared, registers)
    assert (result.blocks, result.warps, result.limiter) == (blocks, warps, limiter)
    assert result.fraction == warps / result.max_warps


@pytest.mark.parametrize(
    ("capability", "optin_kib", "max_threads", "max_blocks"),
    [
        ("7.0", 96, 2048, 32),
        ("7.5", 64, 1024, 16),
        ("8.0", 163, 2048, 32),
        ("8.6", 99, 1536, 16),
        ("8.7", 163, 1536, 16),
        ("8.9", 99, 1536, 24),
        ("9.0", 227, 2048, 32),
        ("10.0", 227, 2048, 32),
        ("12.0", 99, 1536, 24),
    ],
)
def test_the_limits_of_each_capability(capability: str, optin_kib: int, max_threads: int, max_blocks: int) -> None:
    assert occupancy(capability, 32, 0, None) == Occupancy(max_blocks, max_blocks, max_threads // 32, "blocks")
    assert occupancy(capability, 32, optin_kib * 1024, None).blocks == 1
    with pytest.raises(ValueError, match=f"{optin_kib * 1024} bytes of shared memory on {capability}"):
        occupancy(capability, 32, optin_kib * 1024 + 1, None)


@given(st.sampled_from(CAPABILITIES), st.integers(1, 1024), st.integers(0, 64 * 1024), st.integers(1, 64))
def test_one_more_of_anything_never_raises_the_blocks(
    capability: str, threads: int, shared: int, registers: int
) -> None:
    result = occupancy(capability, threads, shared, registers)
    assert result.blocks >= 1
    assert 0 < result.fraction <= 1
    assert result.blocks <= occupancy(capability, threads, shared, None).blocks
    assert result.blocks <= occupancy(capability, max(threads - 1, 1), shared, registers).blocks
    assert result.blocks <= occupancy(capability, threads, max(shared - 1, 0), registers).blocks
    assert result.blocks <= occupancy(capability, threads, shared, max(registers - 1, 1)).blocks


@pytest.mark.parametrize(
    ("capability", "threads", "shared", "registers", "why"),
    [
        ("3.5", 32, 0, None, r"3\.5 is not among 7\.0, 7\.5, .*12\.0"),
        ("9.0", 0, 0, None, "1 to 1024 threads"),
        ("9.0", 1025, 0, None, "1 to 1024 threads"),
        ("9.0", 32, -1, None, "shared memory"),
        ("9.0", 32, 0, 0, "1 to 255 registers"),
        ("9.0", 32, 0, 256, "1 to 255 registers"),
        ("9.0", 1024, 0, 65, "exceed the 65536"),
        ("9.0", 288, 0, 176, "exceed the 65536"),  # 9 warps of 5632 fit, but 9 are checked as 12
    ],
)
def test_blocks_that_cannot_run(capability: str, threads: int, shared: int, registers: int | None, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        occupancy(capability, threads, shared, registers)


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("threads", [32, 128, 1024])
@pytest.mark.parametrize("shared", [0, 1000, 4096, 20_000, 33_000])
def test_shared_memory_has_room_as_long_as_all_blocks_stay(capability: str, threads: int, shared: int) -> None:
    result = occupancy(capability, threads, shared, 32)
    assert result.room >= 0
    assert occupancy(capability, threads, shared + result.room, 32).blocks == result.blocks
    try:
        assert occupancy(capability, threads, shared + result.room + 1, 32).blocks < result.blocks
    except ValueError as error:
        assert "bytes of shared memory" in str(error)  # noqa: PT017 - a block gets no more
