"""Scratch memory and counts of blocks as the compiler takes them. What is passed on: tests/simulator and tests/gpu."""

from __future__ import annotations

import re
from typing import Any

import numba
import pytest

from smembench.kernels.intrinsics.scratch import scratch, wait_for_count
from smembench.kernels.numba_cuda import cuda, uint32
from smembench.toolchains import nvvm

types: Any = numba.types
passed, counts = scratch("passed", "float32", 1000), scratch("counts", "uint32", 12)


def adds_up_what_blocks_passed_on(out: Any, block: Any) -> None:
    thread = cuda.threadIdx.x
    passed()[thread] = out[thread]
    cuda.syncthreads()
    if thread == 0:
        cuda.threadfence()
        cuda.atomic.add(counts(), block, 1)
    for _ in range(wait_for_count(counts(), block, uint32(2))):
        out[thread] = passed()[thread + uint32(1)]


@pytest.mark.usefixtures("ptx")
def test_sums_are_written_before_a_block_is_counted_and_read_after_the_wait() -> None:
    text = nvvm.compiled(
        adds_up_what_blocks_passed_on, (types.float32[::1], types.uint32), (9, 0), at_link_time=False
    ).decode()
    kinds = r"ld\.acquire\.gpu|fence\.\w+\.gpu|membar\.gl|bar\.sync|atom\.global\.add|(?:ld|st)\.global(?=\.[fb]32)"
    result = ["fence" if kind.startswith(("fence", "membar")) else kind for kind in re.findall(kinds, str(text))]
    assert result == [
        "ld.global", "st.global", "bar.sync", "fence", "atom.global.add", "ld.acquire.gpu", "ld.global", "st.global",
    ]  # fmt: skip
    sizes = dict(re.findall(r"\.global .*smembench_(\w+)\[(\d+)\]", str(text)))
    assert sizes == {"passed": "4000", "counts": "48"}
