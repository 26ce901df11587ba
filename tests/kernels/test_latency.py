"""Chains of dependent loads: one cycle through all words, and what a table says of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Measured
from programs import case_of, cuda_kernel
from smembench.kernels.problems import PROBLEMS
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.views.sections import sections

LATENCY = PROBLEMS["latency"]
CHAIN = case_of(cuda_kernel("latency", "globalChain"), 32768, 1024, dtype="int32")


@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_the_chain_is_a_single_cycle(n: int, seed: int) -> None:
    (chain,) = LATENCY.inputs(replace(CHAIN, n=n), seed)
    at, seen = 0, set()
    for _ in range(n):
        at = int(chain[at])
        seen.add(at)
    assert at == 0
    assert seen == set(range(n))


def test_the_next_word_is_seldom_a_neighbour() -> None:
    """A prefetcher finds no step that it could follow."""
    (chain,) = LATENCY.inputs(CHAIN, seed=1)
    near = np.abs(chain - np.arange(CHAIN.n)) <= 16
    assert near.mean() < 0.1


def test_a_load_less_ends_elsewhere_and_is_caught() -> None:
    inputs = LATENCY.inputs(CHAIN, seed=1)
    expected, short = (LATENCY.reference(replace(CHAIN, m=m), inputs, "") for m in (CHAIN.m + 5, CHAIN.m + 4))
    assert LATENCY.check(CHAIN, expected, expected).passed
    assert not LATENCY.check(CHAIN, expected, short).passed


def test_a_sentence_says_how_long_a_load_takes(measured: Measured) -> None:
    times = [0.65536 + place / 1e6 for place in range(40)]
    made = measured("globalChain", times, problem="latency", n=1024, block=None)
    (section,) = sections(Run.of(Description(), [replace(made, case=CHAIN)]))
    assert section.heading == "cuda:0 · latency 32768 loads in a chain of 1024 int32 · warm cache"
    assert section.sentence == "A load takes 20 ns in globalChain."


@pytest.mark.parametrize(("n", "fits"), [(12288, True), (12289, False)])
def test_a_chain_longer_than_a_blocks_shared_memory_is_left_out(n: int, fits: bool) -> None:
    reason = cuda_kernel("latency", "sharedChain").refusal(replace(CHAIN, n=n))
    assert reason == (None if fits else "n 12289: at most 12288 words fit the shared memory of a block")
