"""A message from one block to another through global memory: written, announced by a flag, and read.

Without ``__threadfence`` threads of other blocks may see a thread's accesses to global memory in another order. The
writer's fence stands between the message and the flag, the reader's between the flag and the message. Which orders are
allowed is counted here. What happens only a GPU shows: Numba's simulator runs one block after another.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np

from smembench.kernels.numba_cuda import cuda
from smembench.kernels.types import Array, Index
from smembench.studies.lesson.experiment import Experiment, Found, Lesson

_PAIRS, _LANES = 64, 32
"""Blocks of one warp that write, and as many that read: few enough to run at the same time, as they wait for each
other."""
_APART = 256
"""Elements between messages: 1 KiB, so that they lie in different parts of the L2."""


def build(*, writer_fence: bool, reader_fence: bool, read_before: bool) -> Callable[..., None]:
    """The kernel, for ``(seen, message, ready, sent, number)``: each thread of an even block writes to one of an odd.

    Args:
        writer_fence: whether the writer has a fence.
        reader_fence: whether the reader has one.
        read_before: whether the reader has read the message before it is written, so that its L1 holds the old one.
    """

    def pass_message(seen: Array, message: Array, ready: Array, sent: Array, number: Index) -> None:
        i = cuda.blockIdx.x // 2 * cuda.blockDim.x + cuda.threadIdx.x
        if cuda.blockIdx.x % 2 == 0:
            # wait until the reader is there
            while cuda.atomic.add(ready, i, 0) == 0:
                pass

            # write the message
            message[i * _APART] = number

            # all that is written before is visible before all that is written after
            if writer_fence:
                cuda.threadfence()

            # announce it
            cuda.atomic.exch(sent, i, 1)
        else:
            if read_before:
                seen[i] = message[i * _APART]
            cuda.atomic.exch(ready, i, 1)

            # wait for the announcement
            while cuda.atomic.add(sent, i, 0) == 0:
                pass

            # all that is read after is as new as what was read before
            if reader_fence:
                cuda.threadfence()

            # read the message
            seen[i] = message[i * _APART]

    return pass_message


def orders(*, writer_fence: bool, reader_fence: bool) -> tuple[int, int]:
    """Orders of two stores and two loads in which the flag is seen and the message is old, and all that are allowed."""
    stale = allowed = 0
    for order in permutations(("write message", "write flag", "read flag", "read message")):
        at = order.index
        if writer_fence and at("write message") > at("write flag"):
            continue
        if reader_fence and at("read flag") > at("read message"):
            continue
        allowed += 1
        stale += at("write flag") < at("read flag") and at("read message") < at("write message")
    return stale, allowed


def _stale(runs: int, *, writer_fence: bool, reader_fence: bool, read_before: bool) -> tuple[int, int]:
    """Messages that were read as they were before, and all messages."""
    kernel = build(writer_fence=writer_fence, reader_fence=reader_fence, read_before=read_before)
    launch: Any = cuda.jit(kernel)[2 * _PAIRS, _LANES]
    count, stale = _PAIRS * _LANES, 0
    message = cuda.to_device(np.zeros(count * _APART, np.int32))
    for run in range(1, runs + 1):
        seen, ready, sent = (cuda.to_device(np.zeros(count, np.int32)) for _ in range(3))
        launch(seen, message, ready, sent, np.int32(run))
        stale += int(np.count_nonzero(seen.copy_to_host() != run))
    return stale, runs * count


def _allowed(*, writer_fence: bool, reader_fence: bool) -> Experiment:
    """Whether the rules of memory allow that an old message is read."""

    def run(runs: int) -> Found:
        stale, allowed = orders(writer_fence=writer_fence, reader_fence=reader_fence)
        return Found(f"old in {stale} of {allowed}", (stale == 0) == (writer_fence and reader_fence))

    what = f"all orders, {_named(writer_fence, reader_fence)}"
    return Experiment(what, _expected(writer_fence and reader_fence), run, needs="nothing")


def _seen(*, writer_fence: bool, reader_fence: bool, read_before: bool, unless: str = "") -> Experiment:
    """Whether an old message is read on a GPU."""

    def run(runs: int) -> Found:
        stale, count = _stale(runs, writer_fence=writer_fence, reader_fence=reader_fence, read_before=read_before)
        return Found(f"old in {stale} of {count}", (stale == 0) == (writer_fence and reader_fence))

    what = f"messages, {_named(writer_fence, reader_fence)}{', read before' if read_before else ''}"
    return Experiment(what, _expected(writer_fence and reader_fence), run, needs="gpu", unless=unless)


def _named(writer_fence: bool, reader_fence: bool) -> str:
    if writer_fence == reader_fence:
        return "both fences" if writer_fence else "no fence"
    return f"the {'writer' if writer_fence else 'reader'}'s fence"


def _expected(never: bool) -> str:
    return "never old" if never else "old at times"


_TIMING = "the stores arrived in order this time, which nothing promises: a right result proves nothing"
_CACHE = "the old message was no longer in the reader's L1, or its loads go past it; nothing promises either"

LESSON = Lesson(
    document="slides, memory fences",
    experiments=(
        _allowed(writer_fence=False, reader_fence=False),
        _allowed(writer_fence=True, reader_fence=False),
        _allowed(writer_fence=False, reader_fence=True),
        _allowed(writer_fence=True, reader_fence=True),
        _seen(writer_fence=False, reader_fence=False, read_before=False, unless=_TIMING),
        _seen(writer_fence=False, reader_fence=False, read_before=True, unless=_CACHE),
        _seen(writer_fence=True, reader_fence=False, read_before=True, unless=_CACHE),
        _seen(writer_fence=False, reader_fence=True, read_before=True, unless=_TIMING),
        _seen(writer_fence=True, reader_fence=True, read_before=True),
    ),
    why=(
        "The flag says that the message was written, not that it is visible: its store may still be under way, and the "
        "reader's L1 may hold the old one; only a fence on either side orders the two."
    ),
)
