"""Reads per element of A or B, from global memory and from a tile, counted in traces of the kernels.

The blog's example is a product of 4×4 matrices in tiles of 2×2: each element of a tile is used twice, and in its kernel
with tiles of 32×32 it is used 32 times. The programming guide: without tiles A is read B.width times, with them
B.width / BLOCK_SIZE times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from smembench.explain.analysis import explain
from smembench.model.case import Block, Case
from smembench.model.errors import UsageError
from smembench.studies.lesson.experiment import Experiment, Lesson, Observation

_ITEMSIZE = 4
Element = tuple[str, int]
"""An array and a byte address in it."""


def _accesses(kernel: str, side: int, space: str, kind: str) -> Counter[Element]:
    """Accesses of all threads per element, in a product of matrices of 2×2 blocks of side × side threads."""
    n = 2 * side
    case = Case("matmul", kernel, "cuda:0", "float32", n, n, n, Block(side, side), 0 if kernel == "tiled" else None)
    counts: Counter[Element] = Counter()
    for request in explain(case).trace.requests:
        site = request.site
        if (site.space, site.kind) == (space, kind):
            begins = (address for address in request.addresses if address is not None)
            for address in (at for begin in begins for at in range(begin, begin + site.width, _ITEMSIZE)):
                counts[site.array, address] += request.weight
    return counts


def global_reads(kernel: str, side: int) -> dict[Element, float]:
    """Reads of each element of A and B."""
    return dict(_accesses(kernel, side, "global", "load"))


def uses(kernel: str, side: int) -> dict[Element, float]:
    """Reads of each element of the tiles per time that it is written."""
    written = _accesses(kernel, side, "shared", "store")
    return {element: reads / written[element] for element, reads in _accesses(kernel, side, "shared", "load").items()}


def _experiment(what: str, times: int, elements: int, counted: Callable[[], dict[Element, float]]) -> Experiment:
    def run(runs: int) -> Observation:
        try:
            counts = counted()
        except UsageError as error:  # the compilers are missing
            return Observation(str(error), None)
        distinct = sorted(set(counts.values()))
        text = f"{' or '.join(f'{count:g}' for count in distinct)} times each of {len(counts)}"
        return Observation(text, (distinct, len(counts)) == ([times], elements))

    return Experiment(what, f"{times} times each of {elements}", run, needs="nothing")


LESSON = Lesson(
    document="blog, reusing data from shared memory",
    experiments=(
        _experiment("4×4, naive: reads from global memory", 4, 2 * 4 * 4, lambda: global_reads("naive", 2)),
        _experiment("4×4, tiles of 2×2: reads from global memory", 2, 2 * 4 * 4, lambda: global_reads("tiled", 2)),
        _experiment("4×4, tiles of 2×2: uses once in a tile", 2, 2 * 2 * 2, lambda: uses("tiled", 2)),
        _experiment("64×64, tiles of 32×32: uses once in a tile", 32, 2 * 32 * 32, lambda: uses("tiled", 32)),
    ),
    why=(
        "A block loads an element into its tile once, and as many of its threads use it there as the tile is wide: the "
        "reads of global memory are that many times fewer."
    ),
    check="the addresses that each thread loads are counted in a trace of the kernels that are timed",
)
