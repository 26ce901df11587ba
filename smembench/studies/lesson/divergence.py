"""Barriers in branches that the threads of a block part at: the document's listing, and what really waits for ever.

The document allows ``__syncthreads`` in a conditional only if all threads of the block decide alike. Since Volta a
barrier counts the block's threads that have not ended, and asks neither which ``__syncthreads`` they wait at nor
whether the others have returned (CUDA programming guide, "Synchronization Functions"; PTX ISA, ``barrier``). What
remains is a thread that lives on and never comes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.types import Array
from smembench.studies.lesson.experiment import Experiment, Lesson, Observation, launcher

_THREADS = 64
_SECONDS = 5.0
_INT = number("int32")

Listing = Callable[[Array, Array], None]
"""A kernel for one block: each thread passes an element to the thread as far from the other end, by a shared tile."""


def before_the_branch(out: Array, inp: Array) -> None:
    """The barrier is before the branch."""
    tile = cuda.shared.array(_THREADS, _INT)
    t = cuda.threadIdx.x
    tile[t] = inp[t]
    cuda.syncthreads()
    if t % 2 == 0:
        out[t] = tile[_THREADS - 1 - t]
    else:
        out[t] = inp[_THREADS - 1 - t]


def in_both_branches(out: Array, inp: Array) -> None:
    """The document's listing: threads part, and each part has a barrier of its own."""
    tile = cuda.shared.array(_THREADS, _INT)
    t = cuda.threadIdx.x
    tile[t] = inp[t]
    if t % 2 == 0:
        cuda.syncthreads()
    else:
        cuda.syncthreads()
    out[t] = tile[_THREADS - 1 - t]


def returned(out: Array, inp: Array) -> None:
    """Odd threads return before the barrier."""
    tile = cuda.shared.array(_THREADS, _INT)
    t = cuda.threadIdx.x
    tile[t] = inp[t]
    if t % 2 == 1:
        out[t] = inp[_THREADS - 1 - t]
        return
    cuda.syncthreads()
    out[t] = tile[_THREADS - 1 - t]


def waiting(out: Array, inp: Array) -> None:
    """Odd threads wait for what the even ones do behind the barrier."""
    tile = cuda.shared.array(_THREADS, _INT)
    passed = cuda.shared.array(1, _INT)
    t = cuda.threadIdx.x
    tile[t] = inp[t]
    passed[0] = 0
    cuda.syncthreads()
    if t % 2 == 0:
        cuda.syncthreads()
        cuda.atomic.add(passed, 0, 1)
    else:
        while cuda.atomic.add(passed, 0, 0) == 0:
            pass
    out[t] = tile[_THREADS - 1 - t]


def _experiment(what: str, listing: Listing, *, hangs: bool = False, unless: str = "") -> Experiment:
    """Run the listing, and count right elements over the launches if it ends."""

    def run(runs: int) -> Observation:
        launch = launcher(listing, 1, _THREADS)
        right = 0
        for run in range(runs):
            inp = np.arange(_THREADS, dtype=np.int32) + run
            out = np.full(_THREADS, -1, np.int32)
            launch(out, inp)
            right += int(np.count_nonzero(out == inp[::-1]))
        all_right = right == runs * _THREADS
        return Observation(f"ends, {right} of {runs * _THREADS} right", all_right and not hangs)

    expected = "waits for ever" if hangs else "ends, all right"
    return Experiment(what, expected, run, unless=unless, hangs=hangs, seconds=_SECONDS)


_COUNTS = "a barrier counts threads that have not ended, whichever of a kernel's barriers they wait at"
_BEFORE_VOLTA = "before Volta all threads of a warp have to reach the same barrier, and the document is right"

LESSON = Lesson(
    document="slides, explicit barrier",
    experiments=(
        _experiment("the barrier before the branch", before_the_branch),
        _experiment("a barrier in each branch, as in the document", in_both_branches, unless=_BEFORE_VOLTA),
        _experiment("odd threads return before the barrier", returned, unless=_BEFORE_VOLTA),
        _experiment("odd threads wait for what comes after the barrier", waiting, hangs=True),
    ),
    why=(
        f"Since Volta {_COUNTS}, so what the document forbids may end, though nothing promises it, and the simulator "
        "does as Volta; a thread that lives on elsewhere is waited for in vain, and the run is killed."
    ),
    check=f"a process that has not ended after {_SECONDS:g} s is killed; of one that ends every element is compared",
)
