"""What is predicted of products of few rows: B read once, whole sectors, and sums between blocks of a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from programs import case_of, cuda_kernel
from smembench.explain.analysis import explain
from smembench.kernels.matmul.cuda import few_rows_clustered
from smembench.kernels.matmul.warp_groups import Tile
from smembench.model.case import BY_COLUMNS, BY_ROWS, Block


@pytest.mark.parametrize(
    ("name", "dtype", "m", "b_layout", "block"),
    [
        ("fewRows", "bfloat16", 1, BY_COLUMNS, Block(32, 8)),
        ("fewRows", "bfloat16", 16, BY_ROWS, Block(32, 16)),
        ("oneRow", "float32", 4, BY_ROWS, Block(32, 16)),
    ],
)
def test_b_is_read_once_in_whole_sectors(name: str, dtype: str, m: int, b_layout: str, block: Block) -> None:
    n, k = 1024, 512
    case = replace(case_of(cuda_kernel("matmul", name), m, n, k, dtype, block), b_layout=b_layout)
    (of_b,) = (access for access in explain(case, quick=True).traffic if access.array == "B")
    assert 32 * of_b.sectors == n * k * (4 if dtype == "float32" else 2)


@pytest.mark.parametrize(("m", "copies_of_a"), [(16, 128), (128, 64)])
def test_b_is_copied_once_and_a_for_each_tile_of_its_columns(m: int, copies_of_a: int) -> None:
    """Of 128 tiles of 64 columns; with 128 rows two blocks share each of 64 tiles of 128 columns."""
    n, k = 8192, 1024
    case = replace(case_of(cuda_kernel("matmul", "fewRowsClustered"), m, n, k, "bfloat16"), b_layout=BY_COLUMNS)
    copied = {item.access.matrix: item for item in explain(case, quick=True).tiles if item.access.kind == "copy"}
    assert copied["B"].global_bytes == n * k * 2
    assert copied["A"].global_bytes == copies_of_a * m * k * 2
    assert copied["B"].shared_bytes == n * k * 2 * (1 + (m > 64))


@pytest.mark.parametrize(("n", "blocks"), [(8192, 1), (2048, 2)])
def test_two_blocks_split_k_where_tiles_leave_multiprocessors_idle(n: int, blocks: int) -> None:
    kernel = cuda_kernel("matmul", "fewRowsClustered")
    case = replace(case_of(kernel, 64, n, 1024, "bfloat16", None), b_layout=BY_COLUMNS)
    program = kernel.build(case)
    assert getattr(program, "cluster", None) == blocks
    explained = explain(case, quick=True)
    assert explained.worst() == 1
    assert bool(explained.distributed) == (blocks > 1)


def test_a_block_without_sums_of_its_own_reads_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of eight columns are one part of the sums, which two blocks cannot share out."""
    case = replace(case_of(cuda_kernel("matmul", "fewRowsClustered"), 64, 512, 512, "bfloat16"), b_layout=BY_COLUMNS)
    form = few_rows_clustered.filled(Tile(64, 8).of(case), split=2)
    monkeypatch.setattr(few_rows_clustered, "form_of", lambda case: form)
    assert explain(case).trace.mistakes == ()
