"""A message from one block to another through global memory: written, announced by a flag, and read.

Without ``__threadfence`` threads of other blocks may see a thread's accesses to global memory in another order. The
writer's fence is between the message and the flag, the reader's between the flag and the message. Which orders are
allowed is counted here. What happens only a GPU shows: Numba's simulator runs one block after another.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import NamedTuple

import numpy as np

from smembench.kernels.numba_cuda import cuda, device
from smembench.kernels.types import Array, Index
from smembench.studies.lesson.experiment import Experiment, Lesson, Observation, launcher


class Fences(NamedTuple):
    """The sides that have a fence."""

    writer: bool
    reader: bool

    @property
    def named(self) -> str:
        """In words."""
        if self.writer == self.reader:
            return "both fences" if self.writer else "no fence"
        return f"the {'writer' if self.writer else 'reader'}'s fence"

    @property
    def expected(self) -> str:
        """The expected reads."""
        return "never old" if all(self) else "old at times"


NONE, WRITER, READER, BOTH = (Fences(*there) for there in ((False, False), (True, False), (False, True), (True, True)))

_PAIRS, _LANES = 1024, 32
"""Blocks of one warp that write, and as many that read: the more of them, the later a store may arrive."""
_COUNT = _PAIRS * _LANES
_WORDS, _APART = 4, 64
"""Words of a message, and elements between them: 256 bytes, so that they lie in different parts of the L2."""


@device
def wait_for(flags: Array, i: Index) -> None:
    """Wait until the thread's neighbour in the other block sets its flag."""
    while cuda.atomic.add(flags, i, 0) == 0:
        pass


def build(fences: Fences, *, read_before: bool) -> Callable[..., None]:
    """The kernel, for ``(seen, message, ready, sent, number)``: a thread of an even block writes to one of the next.

    With ``read_before`` the reader has read the message before it is written, so that its L1 holds the old one. Blocks
    wait for their neighbour: it ends if they start in order and two of them run at a time.
    """
    writer_fence, reader_fence = fences

    def pass_message(seen: Array, message: Array, ready: Array, sent: Array, number: Index) -> None:
        i = cuda.blockIdx.x // 2 * _LANES + cuda.threadIdx.x
        if cuda.blockIdx.x % 2 == 0:
            # wait until the reader is there
            wait_for(ready, i)

            # write the message
            for word in range(_WORDS):
                message[(word * _COUNT + i) * _APART] = number

            # what is written before is visible before what is written after
            if writer_fence:
                cuda.threadfence()

            # announce it
            cuda.atomic.exch(sent, i, 1)
        else:
            if read_before:
                for word in range(_WORDS):
                    seen[word * _COUNT + i] = message[(word * _COUNT + i) * _APART]
            cuda.atomic.exch(ready, i, 1)

            # wait for the announcement
            wait_for(sent, i)

            # what is read after is as new as what was read before
            if reader_fence:
                cuda.threadfence()

            # read the message, first the word that was written last
            for word in range(_WORDS):
                place = (_WORDS - 1 - word) * _COUNT + i
                seen[place] = message[place * _APART]

    return pass_message


def orders(fences: Fences) -> tuple[int, int]:
    """Orders of two stores and two loads in which the flag is seen and the message is old, and all that are allowed."""
    stale = allowed = 0
    for order in permutations(("write message", "write flag", "read flag", "read message")):
        at = order.index
        if fences.writer and at("write message") > at("write flag"):
            continue
        if fences.reader and at("read flag") > at("read message"):
            continue
        allowed += 1
        stale += at("write flag") < at("read flag") and at("read message") < at("write message")
    return stale, allowed


def _allowed(fences: Fences) -> Experiment:
    """Check all allowed orders for one that reads an old message."""

    def run(runs: int) -> Observation:
        stale, allowed = orders(fences)
        return Observation(f"old in {stale} of {allowed}", (stale == 0) == all(fences))

    return Experiment(f"all orders, {fences.named}", fences.expected, run, needs="nothing")


def _seen(fences: Fences, *, read_before: bool, unless: str = "") -> Experiment:
    """Count the messages that a GPU reads as they were before."""

    def run(runs: int) -> Observation:
        launch = launcher(build(fences, read_before=read_before), 2 * _PAIRS, _LANES)
        message = cuda.to_device(np.zeros(_WORDS * _COUNT * _APART, np.int32))
        stale = 0
        for number in range(1, runs + 1):
            ready, sent = (cuda.to_device(np.zeros(_COUNT, np.int32)) for _ in range(2))
            seen = cuda.device_array((_WORDS, _COUNT), np.int32)
            launch(seen.ravel(), message, ready, sent, np.int32(number))
            stale += int(np.count_nonzero((seen.copy_to_host() != number).any(axis=0)))
        return Observation(f"old in {stale} of {runs * _COUNT}", (stale == 0) == all(fences))

    what = f"messages, {fences.named}{', read before' if read_before else ''}"
    return Experiment(what, fences.expected, run, needs="gpu", unless=unless)


_TIMING = "the stores arrived in time, which nothing promises: a right result proves nothing"
_CACHE = "the old message was no longer in the reader's L1, or its loads go past it; nothing promises either"

LESSON = Lesson(
    document="slides, memory fences",
    experiments=(
        *map(_allowed, (NONE, WRITER, READER, BOTH)),
        _seen(NONE, read_before=False, unless=_TIMING),
        _seen(NONE, read_before=True, unless=_CACHE),
        _seen(WRITER, read_before=True, unless=_CACHE),
        _seen(READER, read_before=True, unless=_TIMING),
        _seen(BOTH, read_before=True),
    ),
    why=(
        "The flag says that the message was written, not that it is visible: its store may still be under way, and the "
        "reader's L1 may hold the old one; only a fence on each side orders the two."
    ),
    check="each launch sends its number, and whoever reads another has read an old message",
)
