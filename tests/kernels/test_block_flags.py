"""Handing over between blocks as the compiler takes it. What is handed over: tests/simulator and tests/gpu."""

from __future__ import annotations

import re
from itertools import pairwise
from math import prod
from typing import Any

import numba
import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs import case_of, cuda_kernel, numba_kernel
from smembench.kernels.intrinsics.block_flags import MOST_BLOCKS, accumulate, raise_flag, wait_for_flag
from smembench.kernels.matmul.cuda.stream_k import first_step
from smembench.kernels.matmul.tiled_kernel import FEWEST, stream_k_blocks
from smembench.kernels.numba_cuda import cuda, uint32
from smembench.toolchains import nvvm

types: Any = numba.types


def adds_to_what_was_handed_over(out: Any, block: Any) -> None:
    if cuda.threadIdx.x == 0:
        wait_for_flag(block)
    cuda.syncthreads()
    out[cuda.threadIdx.x] += out[0]
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        raise_flag(block + 1)


@pytest.mark.usefixtures("ptx")
@pytest.mark.parametrize("index", [types.uint32, types.uint64, types.int64])
def test_flags_are_acquired_before_and_released_after_what_is_handed_over(index: Any) -> None:
    text = nvvm.compiled(adds_to_what_was_handed_over, (types.float32[::1], index), (9, 0), at_link_time=False).decode()
    kinds = r"(?:ld\.acquire|st\.relaxed|st\.release)\.gpu\.global\.u32|bar\.sync|(?:ld|st)\.global(?=\.[fb]32)"
    assert re.findall(kinds, str(text)) == [
        "ld.acquire.gpu.global.u32",
        "st.relaxed.gpu.global.u32",
        "bar.sync",
        "ld.global",
        "ld.global",
        "st.global",
        "bar.sync",
        "st.release.gpu.global.u32",
    ]
    (size,) = re.findall(r"\.global .*smembench_block_flags\[(\d+)\]", str(text))
    assert int(size) == 4 * MOST_BLOCKS


def accumulates(out: Any, value: Any) -> None:
    accumulate(out, cuda.threadIdx.x, value)


@pytest.mark.usefixtures("ptx")
@pytest.mark.parametrize("kind", [types.float32, types.float64])
def test_what_is_added_to_an_element_is_added_in_memory(kind: Any) -> None:
    text = nvvm.compiled(accumulates, (kind[::1], kind), (9, 0), at_link_time=False).decode()
    result = re.findall(r"(?:ld|st|red|atom)[.\w]*\.global[.\w]*", str(text))
    assert result == [f"red.relaxed.gpu.global.add.f{kind.bitwidth}"]


def ends(steps: int, blocks: int, pieces: int = 0, piece: int = 0, *, of: tuple[int, ...]) -> list[int]:
    shared = [uint32(number) for number in (steps, pieces, piece)]
    return [int(first_step(uint32(block), uint32(blocks), *shared)) for block in of]


@given(steps=st.integers(1, 2**32 - 1), blocks=st.integers(1, MOST_BLOCKS), data=st.data())
def test_every_step_belongs_to_one_block_and_blocks_have_as_many(steps: int, blocks: int, data: st.DataObject) -> None:
    block = data.draw(st.integers(0, blocks - 1))
    first, begins, end, last = ends(steps, blocks, of=(0, block, block + 1, blocks))
    assert (first, last) == (0, steps)
    assert end - begins in {steps // blocks, -(-steps // blocks)}


@given(blocks=st.integers(1, 300), pieces=st.integers(0, 3000), piece=st.integers(0, 40), data=st.data())
def test_blocks_with_a_piece_more_have_as_many_steps_less(
    blocks: int, pieces: int, piece: int, data: st.DataObject
) -> None:
    """As far as every block has a step, without which nobody would hand over what it waits for."""
    steps = data.draw(st.integers(blocks, 10**6))
    begins = ends(steps, blocks, pieces, piece, of=tuple(range(blocks + 1)))
    assert (begins[0], begins[-1]) == (0, steps)
    shares = [end - begin for begin, end in pairwise(begins)]
    assert min(shares) >= 1
    cost = min(piece, steps // blocks - 1)
    work = [share + cost * len(range(block, pieces, blocks)) for block, share in enumerate(shares)]
    assert max(work) - min(work) <= 1


@given(m=st.integers(1, 9000), n=st.integers(1, 9000), k=st.integers(1, 9000), multiprocessors=st.integers(1, 200))
def test_each_block_has_steps_and_a_flag(m: int, n: int, k: int, multiprocessors: int) -> None:
    program = numba_kernel(case_of(cuda_kernel("matmul", "streamK"), m, n, k))
    tiles, steps = prod(program.grid), -(-k // 16)
    blocks, one = program.on(multiprocessors).grid
    assert one == 1
    assert 1 <= blocks <= min((1 if tiles <= multiprocessors else 2) * multiprocessors, MOST_BLOCKS, tiles * steps)
    assert blocks <= tiles or tiles * steps // blocks >= FEWEST


@pytest.mark.parametrize(
    ("tiles", "steps", "expected"),
    [
        pytest.param(256, 128, 264, id="as many as run at once"),
        pytest.param(133, 64, 264, id="a tile more than multiprocessors"),
        pytest.param(132, 64, 132, id="a tile for each"),
        pytest.param(81, 72, 132, id="one on each"),
        pytest.param(64, 64, 128, id="two for every tile, four idle"),
        pytest.param(61, 64, 132, id="ten too many to be idle"),
        pytest.param(16, 32, 32, id="no fewer steps than pay"),
        pytest.param(5000, 1, 264, id="more tiles than flags"),
        pytest.param(1, 0, 1, id="nothing to sum up"),
    ],
)
def test_blocks_of_an_h200(tiles: int, steps: int, expected: int) -> None:
    assert stream_k_blocks(tiles, steps, 2, 132) == expected
