"""Products by warp groups: where elements lie, when a barrier's phase ends, and what the compiler makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign import CAMPAIGN
from programs import case_of, cuda_kernel, numba_kernel
from smembench.kernels.intrinsics import bulk_copy
from smembench.kernels.intrinsics.bulk_copy import arrive, expect_bytes, places_in_tile, set_barrier, swizzled
from smembench.kernels.intrinsics.warp_group import GROUP, ROWS, places_of_sums
from smembench.kernels.matmul.cluster_tiles import inwards
from smembench.kernels.matmul.cuda import wgmma_clustered, wgmma_packed
from smembench.kernels.matmul.cuda.wgmma_stored import tile_of
from smembench.kernels.matmul.tile_choice import PING_PONG, SHARED, SWAPPED, UNSWAPPED, step_cycles
from smembench.kernels.matmul.warp_groups import TILES, Tile
from smembench.model.case import BY_COLUMNS, BY_ROWS
from smembench.model.formats import FLOAT8, TF32
from smembench.model.hardware import BANKS, WORD_BYTES
from smembench.toolchains import numba
from smembench.toolchains.cubin import usage
from smembench.toolchains.machine_code import opcodes
from smembench.toolchains.mnemonics import mnemonic

BLOCK_BYTES = 227 * 1024
"""Of shared memory, that a block may have (compute capability 9.0)."""
FAR = 64
"""So many instructions lie between products at least where what lies between them is something else."""
NARROWEST = max((tile for tile in SWAPPED if tile.columns == SWAPPED[0].columns), key=lambda tile: tile.rows)
STORED = ("wgmmaStored", "wgmmaClustered", "wgmmaOverlapped")
STEPS = ("wgmma", "wgmmaSpecialized", "wgmmaPersistent", *STORED)
MOST_SUMS = max(PING_PONG, key=lambda tile: tile.sums)
COMPILED_LONG = [
    ("wgmma", FLOAT8, BY_COLUMNS, "QGMMA"),
    ("wgmmaStored", FLOAT8, BY_COLUMNS, "QGMMA"),
    ("wgmmaOverlapped", TF32, BY_COLUMNS, "HGMMA"),
    ("wgmmaPacked", FLOAT8, BY_COLUMNS, "QGMMA"),
]
"""Each kernel and each element type are compiled without these, too."""


@pytest.mark.parametrize(
    ("m", "n", "columns"),
    [
        (512, 512, 64),
        (1024, 1024, 64),  # 128 tiles
        (1032, 1032, 96),  # 99 tiles in one round; 128 columns make 81
        (1088, 1088, 96),  # 108 tiles in one round
        (1408, 1408, 128),  # 121 tiles in one round
        (1536, 1536, 160),  # 120 tiles in one round; 192 columns make 96 tiles, 128 make 144 in two rounds
        (1792, 1792, 224),
        (2048, 2048, 256),
        (2880, 2880, 192),  # three rounds, as many as of 256 columns
        (4160, 4160, 224),  # five rounds, as many as of 256 columns; six of 192 are longer
        (4608, 4608, 256),  # five rounds are less than six of 224 columns
        (8200, 64, 64),
    ],
)
def test_a_tile_is_as_wide_as_takes_fewest_cycles(m: int, n: int, columns: int) -> None:
    case = case_of(cuda_kernel("matmul", "wgmmaStored"), m, n, 4096, "bfloat16")
    assert tile_of(case).columns == columns
    wide = {256: 1024, 224: 928, 192: 832, 160: 736}
    assert {tile.columns: step_cycles(tile) for tile in TILES} == wide | {128: 640, 96: 544, 64: 448}


@pytest.mark.parametrize(
    ("m", "n", "k", "b_layout", "rows", "columns", "share"),
    [
        (1024, 1024, 1024, BY_ROWS, 128, 64, ""),  # 128 tiles in one round, without clusters
        (3072, 3072, 3072, BY_ROWS, 192, 192, ""),  # 256 tiles in two rounds; of 256 × 128 288 in three
        (8192, 8192, 8192, BY_ROWS, 168, 256, ", 2 share A"),  # 12 rounds; of 200 × 128 20 shorter ones
        (4104, 4104, 4104, BY_ROWS, 176, 192, ", 2 share B"),  # 264 clusters in four rounds; of 256 × 128 289 in five
        (5120, 5120, 5120, BY_ROWS, 224, 128, ", 2 share A"),  # seven rounds, as many as of 256 × 128
        (1480, 1480, 1480, BY_ROWS, 152, 128, ", 4 share A"),  # 30 clusters in one round
        (2048, 2200, 2048, BY_ROWS, 192, 192, ", 2 share A"),  # 66 clusters in one round; if two shared B, 72 in two
        (1160, 3056, 1160, BY_COLUMNS, 232, 128, ", 4 share A"),  # 30 clusters in one round
        (800, 6008, 5496, BY_ROWS, 160, 256, ", 4 share A"),  # 30 clusters in one round; if four shared B, 48 in two
        (8200, 8200, 8200, BY_ROWS, 160, 192, ", 2 share B"),
        (8200, 8200, 8200, BY_COLUMNS, 160, 192, ", 2 share B"),
        (4096, 4096, 568, BY_ROWS, 176, 128, ", 2 share A"),  # ping-pong: six rounds, of which the last one waits
    ],
)
def test_tiles_of_clusters_fill_rounds(
    m: int, n: int, k: int, b_layout: str, rows: int, columns: int, share: str
) -> None:
    case = replace(case_of(cuda_kernel("matmul", "wgmmaClustered"), m, n, k, "bfloat16"), b_layout=b_layout)
    tile = wgmma_clustered.tile_of(case)
    assert (tile.rows, tile.columns, tile.sharing) == (rows, columns, share)
    assert tile.ping_pong == (k == 568)


@pytest.mark.parametrize(
    ("m", "n", "k", "b_layout", "apart"),
    [
        (4096, 4096, 4096, BY_ROWS, 1),
        (4000, 4000, 4000, BY_ROWS, 1),  # too little is gained
        (4104, 4104, 4104, BY_ROWS, 4),  # more rows begin at lines
        (4504, 4504, 4504, BY_ROWS, 2),
        (4505, 4504, 4504, BY_ROWS, 1),  # an odd number of rows
        (8192, 8192, 8200, BY_COLUMNS, 8),
        (8200, 8200, 8200, BY_ROWS, 2),
        (8200, 8200, 8200, BY_COLUMNS, 2),
    ],
)
def test_rows_lie_apart_where_that_takes_fewer_lines_in_as_many_rounds(
    m: int, n: int, k: int, b_layout: str, apart: int
) -> None:
    case = replace(case_of(cuda_kernel("matmul", "wgmmaClustered"), m, n, k, "bfloat16"), b_layout=b_layout)
    assert wgmma_clustered.tile_of(case).apart == apart


@pytest.mark.parametrize("name", ["wgmmaPersistent", *STORED])
@given(st.integers(1, 5000), st.integers(1, 5000), st.sampled_from([64, 16384]))
def test_every_tile_of_c_has_one_block(name: str, m: int, n: int, k: int) -> None:
    """In narrow bands where all tiles run at once, and in wider ones, of which the last is seldom full."""
    program = numba_kernel(case_of(cuda_kernel("matmul", name), m, 8 * n, k, "bfloat16"))
    across, down = program.grid
    assert program.tile_of is not None
    result = Counter(map(program.tile_of, range(across * down)))
    assert result == Counter((column, row) for row in range(down) for column in range(across))


@pytest.mark.parametrize(
    ("name", "n", "k", "rows"),
    [
        ("wgmmaStored", 2048, 16384, 4),
        ("wgmmaStored", 4096, 12280, 16),
        ("wgmmaStored", 4096, 12288, 12),
        ("wgmmaOverlapped", 4096, 16384, 12),
    ],
)
def test_bands_have_four_rows_where_all_tiles_run_at_once_and_twelve_where_k_is_long(
    name: str, n: int, k: int, rows: int
) -> None:
    tile_of = numba_kernel(case_of(cuda_kernel("matmul", name), n, n, k, "bfloat16")).tile_of
    assert tile_of is not None
    assert [tile_of(block) for block in (0, rows - 1, rows)] == [(0, 0), (0, rows - 1), (1, 0)]


@pytest.mark.parametrize(
    ("n", "b_layout", "others"),
    [
        (128, BY_ROWS, "wgmmaStored or wgmmaPersistent"),
        (136, BY_COLUMNS, "wgmmaStored or wgmmaPersistent"),
        (130, BY_COLUMNS, "wgmmaPersistent"),  # rows of C that the TMA does not write
    ],
)
def test_what_needs_no_copies_is_left_to_the_steps_that_take_it(n: int, b_layout: str, others: str) -> None:
    case = replace(case_of(cuda_kernel("matmul", "wgmmaPacked"), 64, n, 64, "bfloat16"), b_layout=b_layout)
    assert wgmma_packed.needless(case) == f"wgmmaPacked is only for rows that the TMA does not take; use {others}"
    for name in STEPS[2:4]:
        refused = cuda_kernel("matmul", name).unsupported(replace(case, kernel=name))
        assert (refused is None) == (name in others)


@given(st.sampled_from([1, 2, 4]), st.integers(1, 40))
def test_the_swizzle_moves_every_element_of_a_tile_to_a_place_of_its_own(itemsize: int, rows: int) -> None:
    columns = 128 // itemsize
    box = np.arange(rows * columns, dtype=f"u{itemsize}" if itemsize > 1 else "u1").reshape(rows, columns)
    places = places_in_tile(itemsize, *np.indices(box.shape))
    assert sorted(places.ravel()) == list(range(box.size))
    assert (swizzled(box)[places] == box).all()


def test_eight_rows_of_a_chunk_lie_in_all_banks() -> None:
    """What ldmatrix and wgmma read together. As the matrices lie, all would be in the same four banks."""
    rows, words = np.indices((8, 4))
    for chunk in range(8):
        places = places_in_tile(4, rows, 4 * chunk + words)
        assert sorted(places.ravel() % BANKS) == list(range(BANKS))
    assert places_in_tile(2, 5, 2 * 8 + 3) == 5 * 64 + (2 ^ 5) * 8 + 3  # by hand
    assert WORD_BYTES == 4


@pytest.mark.parametrize("columns", [64, 128, 192, 256])
def test_the_threads_of_a_group_hold_every_result_once(columns: int) -> None:
    counts: Counter[tuple[int, int]] = Counter()
    for thread in range(GROUP):
        rows, pairs = places_of_sums(columns, thread)
        counts.update((row, col) for row in rows for col in pairs)
    assert set(counts.values()) == {1}
    assert set(counts) == {(row, col) for row in range(ROWS) for col in range(columns)}


@given(st.integers(1, 4), st.lists(st.integers(1, 2**20), max_size=4))
def test_a_phase_ends_when_all_have_arrived_and_all_bytes_have_come(arrivals: int, sizes: list[int]) -> None:
    barriers: Any = np.zeros(2, np.uint64)
    set_barrier(barriers, 1, arrivals + len(sizes))
    events: list[Callable[..., None]] = [arrive] * arrivals + [partial(expect_bytes, count=size) for size in sizes]
    for phase in (0, 1, 0):
        assert _phase(barriers) == phase
        for event in events:
            assert _phase(barriers) == phase
            event(barriers, 1)
        for size in sizes:
            assert _phase(barriers) == phase
            bulk_copy._change(barriers, 1, 0, -size)
    assert _phase(barriers) == 1
    assert barriers[0] == 0


def _phase(barriers: Any) -> int:
    return bulk_copy._State.of(barriers[1]).phase


@pytest.mark.slow
@pytest.mark.usefixtures("by_nvvm")
@pytest.mark.parametrize(
    ("name", "dtype", "b_layout", "instruction"),
    [
        *((name, "bfloat16", BY_ROWS, "HGMMA") for name in STEPS),
        ("wgmmaPersistent", "bfloat16", BY_COLUMNS, "HGMMA"),
        ("wgmma", TF32, BY_COLUMNS, "HGMMA"),
        ("wgmmaPersistent", FLOAT8, BY_COLUMNS, "QGMMA"),
        ("wgmmaOverlapped", FLOAT8, BY_COLUMNS, "QGMMA"),
        ("wgmmaPacked", "bfloat16", BY_ROWS, "HGMMA"),
        *(COMPILED_LONG if CAMPAIGN > 1 else ()),
    ],
)
def test_tiles_go_from_the_tma_to_the_tensor_cores_and_nothing_spills(
    name: str, dtype: str, b_layout: str, instruction: str
) -> None:
    odd = name == "wgmmaPacked"
    case = replace(case_of(cuda_kernel("matmul", name), 1000, 1000, 1008 + odd, dtype), b_layout=b_layout)
    tile = wgmma_clustered.tile_of(case) if name == "wgmmaClustered" else TILES[0]
    code = numba.TOOLCHAIN.machine_code(case, numba_kernel(case), "9.0")
    hold(name, instruction, *code, alone=tile.groups == 1, clusters=tile.cluster > 1)


@pytest.mark.slow
@pytest.mark.usefixtures("by_nvvm")
@pytest.mark.parametrize("size", [1536, 4096] if CAMPAIGN > 1 else [1536])
def test_the_copies_of_a_stage_are_no_loop(size: int) -> None:
    """One thread starts all of them, and in small products the others wait for it. At 1536 a stage has most copies."""
    case = case_of(cuda_kernel("matmul", "wgmmaStored"), size, size, size, "bfloat16")
    _, code = numba.TOOLCHAIN.machine_code(case, numba_kernel(case), "9.0")
    tile = tile_of(case)
    pieces = tile.columns * 2 // tile.piece_bytes
    stages, rest = divmod(list(map(mnemonic, opcodes(code))).count("UTMALDG"), 1 + pieces)  # of A, and of B
    assert stages > 1
    assert rest == 0


@pytest.mark.slow
@pytest.mark.usefixtures("by_nvvm")
@pytest.mark.parametrize(
    ("tile", "dtype", "b_layout", "instruction"),
    [
        (NARROWEST, "float16", BY_COLUMNS, "HGMMA"),
        (SWAPPED[-1], "bfloat16", BY_ROWS, "HGMMA"),
        (SWAPPED[-1], TF32, BY_COLUMNS, "HGMMA"),
        (replace(MOST_SUMS, share_a=2), "bfloat16", BY_COLUMNS, "HGMMA"),
        (UNSWAPPED[-1], "bfloat16", BY_COLUMNS, "HGMMA"),
        *([(SWAPPED[-1], FLOAT8, BY_COLUMNS, "QGMMA")] if CAMPAIGN > 1 else []),
    ],
    ids=lambda value: f"{value.rows}x{value.columns}" if isinstance(value, Tile) else value,
)
def test_tiles_of_other_sizes_do_not_spill_either(
    monkeypatch: pytest.MonkeyPatch, tile: Tile, dtype: str, b_layout: str, instruction: str
) -> None:
    """Swapped ones, the tallest of the narrowest and of the widest, whose threads hold most results, by STSM or not.

    And of ping-pong tiles and of those without a swap the one whose threads hold most.
    """
    monkeypatch.setattr(wgmma_clustered, "tile_of", tile.of)
    case = replace(case_of(cuda_kernel("matmul", "wgmmaClustered"), 1000, 1000, 1008, dtype), b_layout=b_layout)
    report, code = numba.TOOLCHAIN.machine_code(case, numba_kernel(case), "9.0")
    hold("wgmmaClustered", instruction, report, code, alone=tile.groups == 1, clusters=tile.cluster > 1)
    assert bool(Counter(map(mnemonic, opcodes(code)))["STSM"]) == (tile.swapped > 0 and dtype != TF32)


@given(
    length=st.integers(1, 600), side=st.integers(1, 40).map(lambda eights: 8 * eights), blocks=st.sampled_from([2, 4])
)
def test_tiles_moved_inwards_cover_a_side_and_copy_no_zeros(length: int, side: int, blocks: int) -> None:
    begins = range(0, -(-length // (side * blocks)) * side * blocks, side)
    moved = [int(inwards(begin, side, length)) for begin in begins]
    assert {place for begin in moved for place in range(begin, begin + side)} >= set(range(length))
    assert all(begin >= length or begin + side <= max(length, side) for begin in moved)


def test_tiles_fit_a_blocks_shared_memory_beside_their_barriers() -> None:
    assert [tile for tile in SHARED if tile.shared_bytes + 8 * (2 * tile.stages + tile.groups) > BLOCK_BYTES] == []


def hold(name: str, instruction: str, report: str, code: bytes, *, alone: bool, clusters: bool) -> None:
    """Hold a kernel's machine code, and ptxas's report of it, to what makes these kernels fast.

    ``alone``: whether a block has one consumer, whose threads may have more registers. ``clusters``: whether blocks
    form clusters.
    """
    packed = name == "wgmmaPacked"
    listed = list(map(mnemonic, opcodes(code)))
    result = Counter(listed)
    assert result[instruction]
    places = [place for place, item in enumerate(listed) if item == instruction]
    between = [listed[one:next_] for one, next_ in pairwise(places) if next_ - one < FAR]
    assert len(between) >= 3  # the four instructions of a step lie together
    assert not any("R2UR" in item for item in between)  # no descriptor is computed between a step's products
    assert result["UTMALDG"]
    if not packed:
        assert not result["LDS"] + result["LDG"]  # no operand passes through registers
    assert bool(result["UTMASTG"]) == (packed or name in STORED)
    assert bool(result["UCGABAR"]) == clusters
    registers, local = usage(code)
    assert local == 0
    assert registers <= (240 if alone else 168)
    assert "serialized" not in report
    assert "setmaxnreg' ignored" not in report
