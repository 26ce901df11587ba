"""Products by warp groups: what threads, the TMA and the tensor cores do in a launch, from traces of a few blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from rich.console import Console

from campaign import CAMPAIGN
from conftest import ROOT, records
from programs import case_of, cuda_kernel, numba_kernel
from smembench.explain import counters, tiles
from smembench.explain.analysis import Explanation, explain
from smembench.explain.banks import wavefronts
from smembench.explain.record import costs_dict
from smembench.explain.tiles import core_matrices, operand_wavefronts
from smembench.kernels.intrinsics.bulk_copy import places_in_tile, row_bytes_of
from smembench.kernels.intrinsics.operands import Operand
from smembench.kernels.matmul.cluster_tiles import box_rows
from smembench.kernels.matmul.cuda import few_rows_clustered, wgmma_clustered, wgmma_stored
from smembench.kernels.matmul.cuda.wgmma_overlapped import EDGE
from smembench.kernels.matmul.tile_choice import SHARED
from smembench.kernels.matmul.warp_groups import TILES, Tile
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import FLOAT8, TF32, produced
from smembench.model.problem import ITEMSIZE
from smembench.views.explain import explanation, print_explanation

STORED = ("wgmmaStored", "wgmmaClustered", "wgmmaOverlapped")
STEPS = ("wgmma", "wgmmaSpecialized", "wgmmaPersistent", *STORED)
BF16, BF16_BY_COLUMNS = ("bfloat16", BY_ROWS), ("bfloat16", BY_COLUMNS)
BY_TF32, BY_FLOAT8 = (TF32, BY_COLUMNS), (FLOAT8, BY_COLUMNS)
ALIKE = [("wgmmaStored", (3592, 4112, 144), *BY_TF32)]
"""By the rules of others, of results of four bytes."""
OPERANDS = [
    Operand("A", 64),
    Operand("B", 256),
    Operand("B", 64, 512, transposed=True, leading=64 * 128),
    Operand("A", 144),
    Operand("B", 64, transposed=True, leading=64 * 128),
]


def of(name: str, m: int, n: int, k: int, dtype: str = "bfloat16", b_layout: str = BY_ROWS) -> Case:
    return replace(case_of(cuda_kernel("matmul", name), m, n, k, dtype), b_layout=b_layout)


def sectors_bytes(rows: int, columns: int, itemsize: int, piece: int = 128) -> int:
    """Of the sectors of a matrix, once for each piece of a row, of so many bytes, that has some of the sector."""
    return bytes_of_boxes(np.arange(rows), columns, itemsize, range(0, columns, piece // itemsize), piece)


def bytes_of_boxes(rows: NDArray[np.int64], columns: int, itemsize: int, begins: Iterable[int], piece: int) -> int:
    """Of the sectors of ``piece`` bytes of each of these rows of a matrix from each of these elements on."""
    width, total = columns * itemsize, 0
    starts = np.array([*begins])[:, None] * itemsize
    first, end = np.maximum(starts, 0), np.minimum(starts + piece, width)
    there = (first < end).ravel()
    first, end = (rows * width + first)[there], (rows * width + end)[there]
    total = int(((end - 1) // 32 - first // 32 + 1).sum())
    return 32 * total


def columns_of(case: Case) -> int:
    """Columns of a block's tile of results."""
    variant = numba_kernel(case).variant or str(cuda_kernel("matmul", case.kernel).results[0])
    return int(variant.partition(",")[0])


def copied_columns(b_layout: str, itemsize: int, n: int, columns: int) -> int:
    """Columns of a row of tiles of B, by whole parts, of which each has some of B."""
    part = row_bytes_of(columns, itemsize) // itemsize if b_layout == BY_ROWS else columns
    return sum(-(-min(columns, n - begin) // part) * part for begin in range(0, n, columns))


def total(explained: Explanation, kind: str, matrix: str, figure: str) -> int:
    """Of all accesses of a kind to tiles of a matrix."""
    chosen = [item for item in explained.tiles if (item.access.kind, item.access.matrix) == (kind, matrix)]
    return sum(getattr(item, figure) for item in chosen)


@pytest.mark.parametrize("name", STEPS[2:])
@pytest.mark.parametrize(("m", "n"), [(128, 64), (1000, 1480), (3592, 4096)])
def test_blocks_of_a_persistent_grid_have_every_tile_once(name: str, m: int, n: int) -> None:
    program = numba_kernel(of(name, m, n, 64))
    assert program.tile_of is not None
    across, down = program.grid
    assert sorted(map(program.tile_of, range(across * down))) == sorted(product(range(across), range(down)))


@pytest.mark.parametrize(
    ("name", "size", "dtype", "b_layout"),
    [
        ("wgmma", (300, 392, 200), *BF16),
        ("wgmma", (64, 64, 64), *BY_TF32),
        ("wgmmaSpecialized", (64, 64, 64), *BF16),
        ("wgmmaSpecialized", (1032, 250, 1000), *BY_FLOAT8),
        ("wgmmaPersistent", (1000, 1480, 1000), *BF16),
        ("wgmmaPersistent", (3592, 4112, 144), *BF16_BY_COLUMNS),
        ("wgmmaStored", (64, 64, 64), *BF16),
        ("wgmmaStored", (2048, 2200, 80), *BY_FLOAT8),  # rows of 64 bytes
        ("wgmmaOverlapped", (64, 64, 64), *BF16),
        ("wgmmaOverlapped", (3592, 4112, 144), *BF16_BY_COLUMNS),
        ("wgmmaOverlapped", (1000, 1480, 1000), *BY_TF32),
        ("wgmmaOverlapped", (2096, 2384, 80), *BY_FLOAT8),
        *(ALIKE if CAMPAIGN > 1 else ()),
    ],
)
def test_every_row_of_tiles_copies_its_matrix_once_and_products_read_whole_tiles(
    name: str, size: tuple[int, int, int], dtype: str, b_layout: str
) -> None:
    """By arithmetic."""
    m, n, k = size
    case = of(name, m, n, k, dtype, b_layout)
    explained, program, itemsize = explain(case), numba_kernel(case), ITEMSIZE[dtype]
    (across, down), columns, rows = program.grid, columns_of(case), 128
    assert total(explained, "copy", "A", "global_bytes") == across * sectors_bytes(m, k, itemsize)
    of_b = sectors_bytes(n, k, itemsize)
    if b_layout == BY_ROWS:
        of_b = sectors_bytes(k, n, itemsize, row_bytes_of(columns, itemsize))
    assert total(explained, "copy", "B", "global_bytes") == down * of_b
    steps = across * down * max(ceil(k * itemsize / 128), 2 * EDGE * (name == "wgmmaOverlapped"))
    assert total(explained, "copy", "A", "shared_bytes") == steps * rows * 128
    # Copies of zeros alone are left out: of pieces of B.
    with_columns = copied_columns(b_layout, itemsize, n, columns)
    assert total(explained, "copy", "B", "shared_bytes") == steps // across * with_columns * 128
    halves = name == "wgmmaOverlapped"  # consumers multiply half of the columns at a time
    assert total(explained, "operand", "A", "shared_bytes") == steps * rows * (2 if halves else 1) * 128
    assert total(explained, "operand", "B", "shared_bytes") == steps * columns * rows // 64 * 128
    read = sum(total(explained, "operand", matrix, "shared_bytes") for matrix in "AB")
    assert sum(item.wavefronts for item in explained.tiles) * 128 == read
    of_c = ITEMSIZE[produced(dtype)]
    stored = name in STORED
    written = sectors_bytes(m, n, of_c, row_bytes_of(columns, of_c)) if stored else 0
    assert total(explained, "store", "C", "global_bytes") == written
    if not stored:
        assert written_once(explained)
        return
    # Also results beyond C, which the TMA leaves out.
    (store,) = explained.shared
    bytes_stored = store.requests * 32 * store.site.width
    assert bytes_stored == across * columns * down * rows * of_c
    if of_c == 2:
        assert store.site.width == 4
        assert store.of_all * 128 == bytes_stored


def tile_in_clusters(
    rows: int, columns: int, share_b: int, share_a: int, apart: int = 1, ping_pong: bool = False
) -> Tile:
    tiles = (tile for tile in SHARED if (tile.rows, tile.columns, tile.ping_pong) == (rows, columns, ping_pong))
    return replace(next(tiles), share_b=share_b, share_a=share_a, apart=apart)


def begins_of_tiles(length: int, side: int, blocks: int) -> list[int]:
    """Where tiles begin of which ``blocks`` form a cluster; the last that begins within the length ends with it."""
    count = -(-length // (side * blocks)) * blocks
    last = max(length - side, 0)
    return [min(begin, last) if begin < length else begin for begin in range(0, count * side, side)]


def begins_of_boxes(side: int, box: int) -> list[int]:
    """Where the buffers of a tile's side begin; the last one ends with it, and has some results again."""
    return [min(begin, side - box) for begin in range(0, side, box)]


@pytest.mark.parametrize(
    ("tile", "size", "dtype", "b_layout"),
    [
        (tile_in_clusters(128, 64, 2, 1), (1024, 1024, 128), *BF16),
        (tile_in_clusters(112, 192, 4, 1), (1000, 776, 136), *BF16),  # swapped, three consumers, odd buffers
        (tile_in_clusters(144, 128, 1, 2), (1000, 776, 136), *BF16_BY_COLUMNS),
        (tile_in_clusters(128, 160, 1, 4), (520, 1032, 200), *BF16),  # in pieces of 64 bytes
        (tile_in_clusters(96, 64, 2, 1, apart=4), (600, 200, 72), *BF16),
        (tile_in_clusters(64, 64, 1, 4, apart=2), (72, 424, 136), *BF16_BY_COLUMNS),  # rows below the last one
        (tile_in_clusters(128, 128, 4, 1), (136, 264, 72), *BY_TF32),
        (tile_in_clusters(80, 256, 1, 2), (250, 520, 272), *BY_FLOAT8),
        (tile_in_clusters(112, 192, 4, 1, ping_pong=True), (1000, 776, 136), *BF16),
        (tile_in_clusters(256, 152, 1, 2), (600, 456, 136), *BF16_BY_COLUMNS),  # two times 64 rows per consumer
        (tile_in_clusters(192, 72, 2, 1, apart=2), (424, 200, 72), *BY_TF32),
        (tile_in_clusters(128, 136, 4, 1), (520, 272, 272), *BY_FLOAT8),
    ],
    ids=lambda value: f"{value.rows}x{value.columns}{value.sharing}" if isinstance(value, Tile) else None,
)
def test_blocks_of_a_cluster_copy_once_what_they_share(
    monkeypatch: pytest.MonkeyPatch, tile: Tile, size: tuple[int, int, int], dtype: str, b_layout: str
) -> None:
    """By arithmetic. A block whose tile has no results multiplies as well, but copies nothing for itself alone."""
    monkeypatch.setattr(wgmma_clustered, "tile_of", tile.of)
    (m, n, k), case = size, of("wgmmaClustered", *size, dtype, b_layout)
    explained, itemsize, of_c = explain(case), ITEMSIZE[dtype], ITEMSIZE[produced(dtype)]
    depth, apart, parts = 128 // itemsize, tile.apart, m // tile.apart
    downs, acrosses = begins_of_tiles(parts, tile.rows, tile.share_b), begins_of_tiles(n, tile.columns, tile.share_a)
    down, across = [begin for begin in downs if begin < parts], [begin for begin in acrosses if begin < n]
    piece = row_bytes_of(tile.columns, itemsize) if b_layout == BY_ROWS else 128
    height, row_bytes = box_rows(tile.of(case)) if tile.swapped else tile.rows, tile.stored_bytes
    of_a = of_b = of_result = steps = 0
    for first in range(apart):
        starts = range(-(first * k % depth), k, depth)
        steps += len(starts)
        for begin in down:
            rows = first + apart * np.arange(begin, min(begin + tile.rows, parts))
            of_a += bytes_of_boxes(rows, k, itemsize, starts, 128)
            boxes = begins_of_boxes(tile.columns, row_bytes // of_c)
            columns = [start + box for start in across for box in boxes]
            for top in begins_of_boxes(tile.rows, height):
                of_result += bytes_of_boxes(rows[top : top + height], n, of_c, columns, row_bytes)
        for begin in across:
            if b_layout == BY_ROWS:
                pieces = range(begin, begin + tile.columns, piece // itemsize)
                of_b += bytes_of_boxes(np.arange(k), n, itemsize, pieces, piece)
            else:
                of_b += bytes_of_boxes(np.arange(begin, min(begin + tile.columns, n)), k, itemsize, starts, 128)
    assert total(explained, "copy", "A", "global_bytes") == len(acrosses) // tile.share_a * of_a
    assert total(explained, "copy", "B", "global_bytes") == len(downs) // tile.share_b * of_b
    assert total(explained, "copy", "A", "shared_bytes") == steps * len(down) * len(acrosses) * tile.rows * 128
    assert total(explained, "copy", "B", "shared_bytes") == steps * len(downs) * len(across) * tile.columns * 128
    blocks = len(downs) * len(acrosses)
    by_rows = tile.rows, tile.columns * tile.rows // 64
    read_a, read_b = (tile.rows * tile.columns // 64, tile.columns) if tile.swapped else by_rows
    assert total(explained, "operand", "A", "shared_bytes") == steps * blocks * read_a * 128
    assert total(explained, "operand", "B", "shared_bytes") == steps * blocks * read_b * 128
    assert total(explained, "store", "C", "global_bytes") == of_result
    (store,) = explained.shared
    stored = -(-height // 16) * 16 if tile.swapped and of_c == 2 else height  # 16 rows at a time
    boxes_of_tile = len(begins_of_boxes(tile.rows, height)) * len(begins_of_boxes(tile.columns, row_bytes // of_c))
    assert store.requests * 32 * store.site.width == blocks * apart * boxes_of_tile * stored * row_bytes


def written_once(explained: Explanation) -> bool:
    """True if threads store every result once."""
    return [(item.kind, item.per_element) for item in explained.traffic if item.array == "C"] == [("store", 1)]


def test_threads_write_every_result_of_packed_matrices_once() -> None:
    assert written_once(explain(of("wgmmaPacked", 1001, 1003, 512)))


@pytest.fixture
def before_swapped_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tile of wgmmaStored at 1000³ as it was when it was counted, and one of wgmmaClustered."""
    (narrow,) = (tile for tile in TILES if tile.columns == 64)
    chosen = wgmma_stored.tile_of
    monkeypatch.setattr(wgmma_stored, "tile_of", lambda case: narrow.of(case) if case.m == 1000 else chosen(case))
    monkeypatch.setattr(wgmma_clustered, "tile_of", tile_in_clusters(128, 128, 2, 1).of)


explain_before = cache(explain)
"""Of cases with these tiles, of which several tests ask."""


@pytest.mark.usefixtures("before_swapped_tiles")
def test_zeros_beyond_the_edges_arrive_like_elements() -> None:
    """At 1000³ 48 bytes after each row and 24 rows of 16 pieces, of A in 16 columns of tiles, of B in 8 rows."""
    explained = explain(of("wgmmaStored", 1000, 1000, 1000))
    arriving = sectors_bytes(1000, 1000, 2) + 1000 * 64 + 24 * 16 * 128
    assert total(explained, "copy", "A", "arriving_bytes") == 16 * arriving
    assert total(explained, "copy", "B", "arriving_bytes") == 8 * arriving
    assert total(explained, "store", "C", "arriving_bytes") == 0


@pytest.mark.parametrize("operand", OPERANDS, ids=["A", "B by columns", "B by rows", "A swapped", "B swapped"])
def test_a_core_matrix_takes_one_wavefront(operand: Operand) -> None:
    assert operand_wavefronts(operand, 0) == operand.rows * operand.row_bytes // 128


def test_without_a_swizzle_a_core_matrix_is_128_bytes_in_a_row() -> None:
    """Two along k, so far apart as ``leading`` states, and eight rows of A each (PTX ISA, "Canonical Layouts")."""
    plain = Operand("A", 16, 32, leading=512, stride=128, swizzle=0)
    matrices = [[start + 16 * row for row in range(8)] for start in (0, 128, 512, 640)]
    assert list(core_matrices(plain, 0)) == matrices


def test_where_a_core_matrix_lies_by_hand() -> None:
    """Of rows 8 to 15 the second chunk: row 8 has it in its place, row 9 in that of the first, row 10 of the fourth."""
    second = list(core_matrices(Operand("A", 64), 2048))[8 + 1]
    assert second == [2048 + 1024 + 128 * row + 16 * place for row, place in enumerate((1, 0, 3, 2, 5, 4, 7, 6))]
    assert wavefronts(second, 16, "load") == 1


@given(st.sampled_from(OPERANDS), st.integers(0, 20), st.sampled_from([1, 2, 4]))
def test_tensor_cores_read_what_the_tma_copied(operand: Operand, tile: int, itemsize: int) -> None:
    """The rows of core matrices are those of swizzled tiles, one after another, of 128 bytes each."""
    start, rows = 1024 * tile, operand.rows
    row, column = np.indices((rows, 128 // itemsize))
    one = places_in_tile(itemsize, row, column)[:, :: 16 // itemsize] * itemsize
    expected = {int(start + left * rows * 128 + at) for left in range(operand.row_bytes // 128) for at in one.ravel()}
    result = [address for rows in core_matrices(operand, start) for address in rows]
    assert len(result) == len(expected)
    assert set(result) == expected


def test_tiles_without_a_swizzle_would_have_conflicts(monkeypatch: pytest.MonkeyPatch) -> None:
    case = of("wgmmaStored", 1024, 1024, 1024)
    roof = explain(case).work.wavefronts
    monkeypatch.setattr(tiles, "swizzled", lambda address, swizzle: address)
    tiles.operand_wavefronts.cache_clear()
    explained = explain(case)
    tiles.operand_wavefronts.cache_clear()
    assert {item.per_core_matrix for item in explained.tiles if item.access.kind == "operand"} == {8.0}
    assert explained.work.wavefronts - roof == 7 * sum(item.wavefronts for item in explained.tiles) / 8


def test_other_kernels_have_no_tiles() -> None:
    assert explain(case_of(cuda_kernel("matmul", "mmaAsync"), 256, 256, 256, "bfloat16")).tiles == ()


def test_the_shares_of_threads_are_of_threads_alone() -> None:
    explained = explain(of("wgmmaStored", 1024, 1024, 1024))
    _, threads, units = explanation(explained)
    assert [row[-1] for row in threads.cells] == ["100 %"]
    assert [(row[1], row[4]) for row in units.cells] == [
        ("operand A", "1.00"),
        ("operand B, transposed", "1.00"),
        ("store of C", ""),
        ("copy of A", ""),
        ("copy of B", ""),
    ]
    assert "the tensor cores read 67.1 MB of shared memory (32.0 FLOP per byte). No thread requests" in units.sentence
    assert "Shared memory is free of bank conflicts." in units.sentence


@pytest.mark.usefixtures("before_swapped_tiles")
def test_tiles_are_readable_on_a_narrow_screen() -> None:
    console = Console(width=80, record=True)
    explained = explain_before(of("wgmmaClustered", 1024, 1024, 1024))
    print_explanation(console, explained, explanation(explained))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    (line,) = (line for line in lines if "copy of B" in line)
    assert line.split()[1:] == ["copy", "of", "B", "shared0", "64×64", "16.8", "MB", "8.39", "MB"]
    text = " ".join(" ".join(lines).split())
    assert "the TMA copies 25.2 MB from global memory (85.3 FLOP per byte; tiles of B to 2 blocks at once)" in text


@pytest.mark.usefixtures("before_swapped_tiles")
def test_tiles_are_held_against_counters_of_their_own() -> None:
    explained = explain(of("wgmmaStored", 1024, 1024, 1024))
    reading = dict.fromkeys([*counters.METRICS, *counters.OPTIONAL], 0.0)
    wavefronts, copied, stored = (item.total for item in counters.TILES)
    reading |= {wavefronts: 524288.0, copied: 24 * 2.0**21, stored: 1.01 * 2**21}
    result = {item.figure: (item.predicted, item.agrees) for item in counters._compare(explained, reading)}
    assert [result[item.name] for item in counters.TILES] == [(524288, True), (24 * 2**21, True), (2**21, False)]
    assert result["shared wavefronts"] == (524288 + 1024 * 1024 * 2 / 128, None)
    clustered = dict.fromkeys(reading, 0.0) | {copied: 2.0**24 + 2 * 2**23}
    result = {
        item.figure: (item.predicted, item.agrees)
        for item in counters._compare(explain_before(of("wgmmaClustered", 1024, 1024, 1024)), clustered)
    }
    assert result["bytes copied by the TMA"] == (2**25, True)
    plain = counters._compare(explain(case_of(cuda_kernel("matmul", "tiled"), 64, 64, 64)), clustered | {copied: 0.0})
    assert not {item.name for item in counters.TILES} & {item.figure for item in plain}


@pytest.mark.usefixtures("before_swapped_tiles")
def test_what_gpus_counted_of_tiles_is_predicted_to_the_last_byte() -> None:
    """Ragged in all three sizes; of clusters in k alone, since tiles at an edge have been moved inwards since."""
    ragged = ["wgmmaClustered/cuda:0/numba/bfloat16/1000x"]
    assert_predicted("h200-explain-wgmma", "h100-explain-wgmma", "h100-explain-multicast", but=ragged)


def test_what_a_gpu_counted_of_clusters_is_predicted_to_the_last_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to four blocks that share A or B, ragged in all three, by the tiles that the rule took then."""
    tiles = {
        712: tile_in_clusters(64, 64, 4, 1),
        72: tile_in_clusters(64, 64, 1, 4, apart=2),
        224: tile_in_clusters(64, 64, 1, 2),
        440: tile_in_clusters(64, 64, 4, 1, apart=2),
        1000: tile_in_clusters(144, 64, 1, 4),
        1221: tile_in_clusters(128, 96, 1, 4),
        3033: tile_in_clusters(256, 144, 1, 1),
        3231: tile_in_clusters(128, 80, 2, 1),
    }
    form = few_rows_clustered.filled(Tile(40, 24, share_b=4), 1)
    monkeypatch.setattr(wgmma_clustered, "tile_of", lambda case: tiles[case.m].of(case))
    monkeypatch.setattr(few_rows_clustered, "form_of", lambda case: form._replace(tile=form.tile.of(case)))
    assert_predicted("h200-explain-clusters")


def test_what_a_gpu_counted_of_products_by_halves_is_predicted_to_the_last_byte() -> None:
    """Ragged in all three, both layouts, and fewer steps along k than there are at the edges."""
    assert_predicted("h200-explain-overlapped")


def zeros_alone(case: Case) -> int:
    """Bytes of copies that lie wholly beyond the matrices, of kernels that copied them."""
    if "Clustered" in case.kernel:
        return 0
    program, columns, itemsize = numba_kernel(case), columns_of(case), ITEMSIZE[case.dtype]
    (across, down), least = program.grid, 2 * EDGE if case.kernel == "wgmmaOverlapped" else 0
    steps = max(-(-case.depth * itemsize // 128), least)
    beside = across * columns - copied_columns(case.b_layout, itemsize, case.n, columns)
    return down * beside * steps * 128


def assert_predicted(*tables: str, but: Sequence[str] = ()) -> None:
    explained: dict[str, Explanation] = {}
    rows = [row for table in tables for row in records((ROOT / f"results/reference/{table}.csv").read_text())]
    judged = {figure.name: figure for figure in counters.TILES}
    for row in (row for row in rows if row["figure"] in judged and not any(size in row["case_id"] for size in but)):
        name, figure = row["case_id"], judged[row["figure"]]
        if name not in explained:
            _, kernel, _, _, dtype, shape, *_ = name.split("/")
            m, k, n = map(int, shape.split("x"))
            layout = BY_COLUMNS if f"b_layout={BY_COLUMNS}" in name else BY_ROWS
            explained[name] = explain(of(kernel, m, n, k, dtype, layout), quick=True)
        predicted = sum(figure.predicted(item) for item in explained[name].tiles if item.access.kind == figure.kind)
        # Copies of zeros alone were counted, but have been left out since.
        zeros = zeros_alone(of(kernel, m, n, k, dtype, layout)) if figure.kind == "copy" else 0
        assert predicted + zeros == float(row["counted"]), row
    assert explained


@pytest.mark.usefixtures("before_swapped_tiles")
def test_tiles_for_programs() -> None:
    explained = explain_before(of("wgmmaClustered", 1024, 1024, 1024))
    result = {(item["kind"], item["matrix"]): item for item in costs_dict(explained)["tiles"]}
    copied, read = result["copy", "B"], result["operand", "B"]
    assert (copied["blocks"], copied["shared_bytes"], copied["wavefronts"]) == (2, 2 * copied["global_bytes"], None)
    assert (read["rows"], read["columns"], read["transposed"], read["swizzle_bytes"]) == (16, 256, True, 128)
    assert (read["leading_bytes"], read["stride_bytes"]) == (8192, 1024)
    assert read["wavefronts"] * 128 == read["shared_bytes"]
