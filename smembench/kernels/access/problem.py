"""Access patterns of shared memory: values stored to it and loaded from it, pass after pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from smembench.model.axis import PAD, PAD_WIDTH, Axis
from smembench.model.case import Block, Case
from smembench.model.clauses import Compared, Result, conflict_change, conflicts, time
from smembench.model.hardware import WARP, WAVEFRONT_BYTES
from smembench.model.problem import ITEMSIZE, Problem, Shape
from smembench.model.texts import Texts

if TYPE_CHECKING:
    from smembench.model.problem import Array

STAY, READ_COLUMNS, SET_COLUMNS, BROADCAST = "stay", "read columns", "set columns", "broadcast"
"""Whose values a pass gives a thread: see ``Access.reference``."""

LINE = Block(512, 1)
"""The block of kernels whose pattern is a line of threads and has no tile."""

MAX_STRIDE = 32
"""From there on strides repeat the banks of smaller ones."""

_HELD_BYTES = 32
_DEFAULT_PASSES = 256
_MAX_PASSES = 2**22
_VALUES = 2**20
_THREADS_PER_MULTIPROCESSOR = 24 * 1024
"""A multiple of the 1024, 1536 and 2048 that are resident at once: every multiprocessor gets the same whole rounds."""


def tiles(dtype: str) -> int:
    """Tiles of a block, as many as a thread holds values: 32 bytes of them."""
    return _HELD_BYTES // ITEMSIZE[dtype]


class Access(Problem):
    """``n`` threads carry a handful of values each through shared memory, ``m`` passes long.

    A pass stores each value to a tile of its own, waits, loads one from each tile, adds one to the first of them, and
    waits. The next pass stores every value to the tile before the one it was loaded from, so that each takes its turn
    as the first. So a launch costs shared memory's time and little else, no pass can be left out unnoticed, and what
    comes out depends on where each store and load went.

    Bytes count what threads store and load in shared memory, 2·32 per thread and pass, for every pattern alike: of a
    word that many lanes load at once, each lane's copy counts. Global memory is touched before the first pass and
    after the last and is left out of the count.
    """

    name = "access"
    order = 3
    dtypes = ("int32", "float32", "int64", "float64")
    default_n = _THREADS_PER_MULTIPROCESSOR
    default_blocks = (Block(32, 32), Block(32, 16))
    default_strides = tuple(range(1, MAX_STRIDE + 1))
    sizes = (
        Axis("passes", "How many times each value goes through shared memory.", str(_DEFAULT_PASSES)),
        Axis("n", "Threads.", f"{default_n} per multiprocessor of the GPU"),
    )
    memory = "shared"
    arrays = ("out", "in")

    def shapes(self, sizes: Mapping[str, tuple[int, ...]]) -> Iterable[Shape]:
        """``passes`` by ``n`` threads; ``n`` 0 where none is given, for ``on_device`` to fill."""
        return (Shape(m, n) for m, n in product(sizes.get("passes") or (_DEFAULT_PASSES,), sizes.get("n") or (0,)))

    def sizes_of(self, case: Case) -> dict[str, int]:
        """``passes`` and ``n``."""
        return {"passes": case.m, "n": case.n}

    def most_bytes_per_clock(self, case: Case, computes: str) -> int:
        """The banks' bandwidth; lanes that share wider words can exceed it.

        A word of 4 bytes for a whole warp is 128 bytes in one clock. Of 8 bytes hardware may serve all lanes at once,
        too.
        """
        return max(WAVEFRONT_BYTES, WARP * ITEMSIZE[case.dtype]) if computes == BROADCAST else WAVEFRONT_BYTES

    def on_device(self, case: Case, multiprocessors: int | None) -> Case:
        """Unless ``n`` was given, as many threads as keep every multiprocessor busy equally long, or those of one."""
        return case if case.n else replace(case, n=self.default_n * (multiprocessors or 1))

    def unsupported(self, case: Case) -> str | None:
        """Too long a stride, more passes than float32 can count beside the values, and a cold cache."""
        if case.stride is not None and case.stride > MAX_STRIDE:
            return f"stride {case.stride}: the {MAX_STRIDE} banks repeat; use 1 to {MAX_STRIDE}"
        if case.m > _MAX_PASSES:
            return f"passes {case.m}: the result is exact up to {_MAX_PASSES}; use fewer"
        if case.cache != "warm":
            return f"cache {case.cache}: shared memory has none before it; leave cache out"
        return None

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """An array of whole numbers in [0, 2^20): sums of eight and the passes stay exact in float32."""
        return (self.rng(case, seed).integers(0, _VALUES, case.n).astype(case.dtype),)

    def input_key(self, case: Case) -> tuple[object, ...]:
        """The reference depends on the block, too."""
        return (*super().input_key(case), case.block)

    def scalars(self, case: Case) -> tuple[int, ...]:
        """``(n, passes)``."""
        return (case.n, case.m)

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Array:
        """Each thread starts with its input in every value and ends with the sum of those that came to it.

        These are one thread's: its own where a pass stores and loads at the same place (stay), the first lane's of
        the warp (broadcast), and with columns that of the thread whose element lies there, as often as there are
        passes. Each pass has added one. Threads of the last block beyond n start with zero.
        """
        import numpy as np

        (values,) = inputs
        if computes == BROADCAST:
            values = values[np.arange(case.n) // WARP * WARP]
        elif computes != STAY:
            values = _moved(values, _origins(case, computes), case.m)
        total: Array = values * values.dtype.type(tiles(case.dtype)) + values.dtype.type(case.m)
        return total

    def bytes_moved(self, case: Case) -> int:
        """2·32·n·passes: what threads store and load in shared memory."""
        return 2 * _HELD_BYTES * case.n * case.m


class AccessTexts(Texts):
    """The command and the tables of access patterns."""

    title = "shared-memory access"
    help = """
    Time access patterns of shared memory, in bytes per clock.

    The banks of a multiprocessor deliver 128 bytes per clock. The default is the four patterns on a tile, setRowReadCol
    with padding, parallelAccess, serialAccess and broadcastAccess. --kernel also takes each pattern as …Dyn (dynamic
    shared memory), …Pad and …DynPad; --stride alone runs the kernel strided. Each thread stores and loads 32 bytes per
    pass, and only these bytes count. The sums are checked bit for bit. It needs a GPU; smembench explain predicts the
    conflicts without one.

    Examples:

      smembench access
      smembench access --stride 1:32 --export staircase.csv
      smembench access --kernel setRowReadColPad --block 32x32,16x16 --pad-width 1,2
      smembench access --kernel setColReadCol,setColReadColDynPad --dtype int32,int64
    """
    strides_in_rows = True
    strided_kernel = "strided"
    kernel_axes = (
        Axis("block", "Block dimensions in threads, the tile's as well.", ",".join(map(str, Access.default_blocks))),
        Axis("stride", "Elements from lane to lane, for the kernel strided.", f"1:{MAX_STRIDE}"),
        PAD,
        PAD_WIDTH,
    )
    options = ("kernel", "dtype", "device")
    columns = ("bytes_per_clock", "percent_of_peak")

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """The fastest pattern against what the banks deliver, the slowest against it, and what padding buys."""
        best, worst = min(results, key=time), max(results, key=time)
        clauses = []
        if best.bytes_per_clock is not None and best.percent_of_peak is not None:
            share = f"{best.percent_of_peak:.0f} % of what the banks deliver"
            rate = f"{best.bytes_per_clock:.1f} bytes per clock"
            clauses.append(f"the fastest, {_pattern(best)}, reaches {rate}, {share}")
        if worst is not best:
            clauses.append(f"{_pattern(worst)} ({conflicts(worst)}) is {compared(worst, best, _pattern(best))}")
        padded = next((result for result in results if result.pad), None)
        alike = padded and (padded.kernel.replace("Pad", ""), padded.block)
        unpadded = next((result for result in results if (result.kernel, result.block) == alike), None)
        if padded and unpadded:
            change = conflict_change(unpadded, padded)
            clauses.append(f"{_pattern(padded)} is {compared(padded, unpadded)}{change}")
        return clauses

    def size(self, case: Case) -> str:
        """``256 passes of 3244032 threads``."""
        return f"{case.m} passes of {case.n} threads"


PROBLEM = Access(AccessTexts())


def _pattern(result: Result) -> str:
    """A result by its kernel and block, or its stride."""
    return (
        f"stride {result.stride}" if result.stride else " ".join(map(str, filter(None, (result.kernel, result.block))))
    )


def _origins(case: Case, computes: str) -> Array:
    """For each thread of a block the one whose values a pass gives it.

    Thread t reads columns at the element in row t % y and column t // y of a tile of x × y, which thread
    (t % y)·x + t // y has set; where columns are set, it is the other way round.
    """
    import numpy as np

    assert case.block is not None
    x, y = case.block
    threads = np.arange(x * y)
    origins: Array = threads % y * x + threads // y
    return origins if computes == READ_COLUMNS else np.argsort(origins)


def _moved(values: Array, origins: Array, passes: int) -> Array:
    """``values`` after so many passes over blocks of as many threads as there are origins, the last one padded."""
    import numpy as np

    blocks = np.zeros((-(-values.size // origins.size), origins.size), values.dtype)
    blocks.reshape(-1)[: values.size] = values
    came = np.arange(origins.size)
    while passes:
        if passes % 2:
            came = came[origins]
        origins = origins[origins]
        passes //= 2
    return blocks[:, came].reshape(-1)[: values.size]
