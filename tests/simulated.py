"""Numba's CUDA simulator: runs Numba kernels without a GPU, for tests; never for timing.

It shows what their PTX does not (``by_ptx``): Python bodies of intrinsics, hand-overs between blocks, and tensor cores.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
from greenlet import getcurrent, greenlet

from smembench.devices.base import POISON
from smembench.kernels.intrinsics.bulk_copy import places_in_tile
from smembench.kernels.intrinsics.warp_group import GROUP, GROUP_BARRIER
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import SIMULATED, cuda
from smembench.kernels.program import NumbaKernel, TensorMap
from smembench.model.case import Case
from smembench.model.errors import DeviceUnavailable
from smembench.model.formats import carried
from smembench.model.hardware import WARP
from smembench.model.problem import Problem

if TYPE_CHECKING:
    from smembench.model.problem import Array

_thread: Callable[[], Any] = getcurrent
"""The simulated thread that runs."""
_MULTIPROCESSORS = 1
"""Only one, so that a persistent block computes several tiles of the output even in a small case."""


def run(case: Case, kernel: Kernel, problem: Problem, inputs: tuple[Array, ...]) -> Array:
    """The output of one launch on a poisoned buffer.

    Raises:
        DeviceUnavailable: if NUMBA_ENABLE_CUDASIM was not set before Numba was imported.
        IndexError: if the kernel reads or writes outside an array.
    """
    if not SIMULATED:
        raise DeviceUnavailable("simulator: set NUMBA_ENABLE_CUDASIM=1 before the start")
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    output = np.empty(problem.output_length(case), carried(problem.array_types(case)[0]))
    output.view("u1")[:] = POISON
    program = kernel.build(case)
    assert isinstance(program, NumbaKernel), case.id
    program = program.on(_MULTIPROCESSORS)
    launch: Any = cuda.jit(program.function)[program.grid, program.block, None, program.dynamic_bytes]
    if program.zeroed:
        output.view("u1")[:] = 0
    with _numba_mended():
        arrays = [array[problem.first(case) :] for array in (output, *inputs)]
        copies = {item.array: _poisoned(item, arrays) for item in program.tensor_maps if item.copied}
        mapped = [copies[item.array] if item.copied else arrays[item.array] for item in program.tensor_maps]
        maps = map(Mapped, program.tensor_maps, mapped)
        # Not copied, so that what a tensor map writes is in the output.
        launch(*map(FakeCUDAArray, arrays), *(np.uint32(value) for value in problem.scalars(case)), *maps)
    return output


def _poisoned(described: TensorMap, arrays: list[Array]) -> Array:
    """Memory for a copy of an array."""
    memory = np.empty(described.rows * described.stride, arrays[described.array].dtype)
    memory.view("u1")[:] = POISON
    return memory


class Mapped:
    """A tensor map with its matrix: what copies of tiles in the simulator read and write."""

    def __init__(self, described: TensorMap, array: Array) -> None:
        rows, columns, stride = described.rows, described.columns, described.stride
        shape, strides = (rows, columns), (stride * array.itemsize, array.itemsize)
        self._matrix = np.lib.stride_tricks.as_strided(array, shape, strides)
        self._shape = (described.tile_rows, described.row_bytes // array.itemsize)
        self._row_bytes, self._apart = described.row_bytes, described.apart

    def box(self, row: int, column: int) -> Array:
        """The elements of a tile, with zeros beyond the matrix."""
        box = np.zeros(self._shape, self._matrix.dtype)
        of_box, of_matrix = self._inside(row, column)
        box[of_box] = self._matrix[of_matrix]
        return box

    def taken(self, tile: Array) -> Array:
        """The elements of a swizzled tile that begins shared memory."""
        rows, columns = np.indices(self._shape)
        taken: Array = tile[places_in_tile(tile.itemsize, rows, columns, self._row_bytes)]
        return taken

    def write(self, row: int, column: int, box: Array) -> None:
        """Write the elements of a tile, but for what lies beyond the matrix."""
        of_box, of_matrix = self._inside(row, column)
        self._matrix[of_matrix] = box[of_box]

    def _inside(self, row: int, column: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What of a tile that begins there lies in the matrix: where in the tile, and where in the matrix."""
        places = row + self._apart * np.arange(self._shape[0]), column + np.arange(self._shape[1])
        within = [np.flatnonzero((at >= 0) & (at < side)) for at, side in zip(places, self._matrix.shape, strict=True)]
        of_matrix = (at[which] for at, which in zip(places, within, strict=True))
        return np.ix_(*within), np.ix_(*of_matrix)


@contextmanager
def _numba_mended() -> Iterator[None]:
    """Patch Numba: threads of a block take turns, count in uint32, and shared arrays are poisoned and found by line.

    ``cuda.syncwarp`` waits for the warp alone, ``cuda.shfl_sync``, ``cuda.shfl_down_sync`` and a barrier of a warp
    group exist, and they may stand in functions of other modules than the kernel's.
    """
    from numba.cuda.simulator import kernel, kernelapi

    dim3 = kernel.Dim3

    def in_uint32(*axes: int) -> Any:
        return dim3(*map(np.uint32, axes))

    with ExitStack() as patched:
        for module, name, mended in (
            (kernel, "BlockManager", _block_in_turns(kernel)),
            (kernel, "swapped_cuda_module", _swapped_everywhere),
            (kernel, "Dim3", in_uint32),
            (kernelapi, "Dim3", in_uint32),
            (kernelapi, "threading", SimpleNamespace(current_thread=_thread)),
            (kernelapi, "FakeCUDAShared", _with_one_array_per_line(kernelapi.FakeCUDAShared)),
            (kernelapi.FakeCUDAModule, "syncwarp", lambda _, mask=2**WARP - 1: _thread().syncwarp(mask)),
            (kernelapi.FakeCUDAModule, "shfl_sync", lambda _, *given: _thread().shuffle(*given)),
            (kernelapi.FakeCUDAModule, GROUP_BARRIER, lambda _: _thread().syncgroup()),
            (kernelapi.FakeCUDAModule, "nanosleep", lambda _, ns: _thread().give_way()),
            (kernelapi.FakeCUDAModule, "shfl_down_sync", lambda _, *given: _thread().shuffle_down(*given)),
        ):
            patched.enter_context(patch.object(module, name, mended, create=True))
        yield


@contextmanager
def _swapped_everywhere(function: Any, simulated: Any) -> Iterator[None]:
    """Replace ``cuda`` by the simulator's in the kernel's module and in those of the functions that it calls."""
    real = cuda  # this module's is replaced as well
    modules = [vars(module) for name, module in [*sys.modules.items()] if name.startswith("smembench")]
    names = [item for item in (function.__globals__, vars(sys.modules[__name__]), *modules) if item.get("cuda") is real]
    try:
        for item in names:
            item["cuda"] = simulated
        yield
    finally:
        for item in names:
            item["cuda"] = real


def _block_in_turns(kernel: Any) -> Any:
    """Numba's block manager, but each thread runs alone until it ends or reaches a barrier of the block or of its warp.

    In Numba's own, threads run in any order that Python chooses, and one more thread polls whether all wait. That is
    slow, and the effect of a missing barrier is random. Here threads are greenlets that take turns, first to last and
    then back, so a thread that reads what another has yet to write fails every time. Who waits for its warp or its warp
    group goes on before those that wait for the block.
    """

    class Turn(greenlet):  # type: ignore[misc]
        def __init__(self, run: Callable[[], None], block: Any, thread: Any, number: int) -> None:
            super().__init__(run)
            self.blockIdx, self.threadIdx, self.thread_id = block, thread, np.uint32(number)
            self.warp: list[Turn] = []
            self.group: list[Turn] = []
            self.meets = False  # it waits for its group
            self.waits_for = 0  # lanes
            self.given: dict[int, list[Any]] = {}  # in all shuffles, by their masks
            self.going_on: Counter[int] = Counter()  # by masks: lanes of the warp that have met but not gone on

        def syncthreads(self) -> None:
            self.parent.switch()

        def syncwarp(self, mask: int) -> None:
            self.waits_for = mask
            self.syncthreads()
            if not self.going_on[mask]:  # the first of them looks whether all have come
                lanes = {i: lane for i, lane in enumerate(self.warp) if mask >> i & 1}
                missing = [i for i, lane in lanes.items() if lane.waits_for != mask]
                assert not missing, f"lanes {missing} are missing where their warp waits for them"
                self.going_on[mask] = len(lanes)
            self.going_on[mask] -= 1
            self.waits_for = 0

        def syncgroup(self) -> None:
            self.meets = True
            if all(turn.meets for turn in self.group):
                for turn in self.group:
                    turn.meets, turn.waits_for = False, 1
            self.syncthreads()  # until all go on in the same round
            self.waits_for = 0

        def give_way(self) -> None:
            """Let the others run, but none of those that wait at a barrier of the block."""
            self.waits_for = 1
            self.syncthreads()
            self.waits_for = 0

        def shuffle_down(self, mask: int, value: Any, lanes: Any) -> Any:
            return self.shuffle(mask, value, int(self.thread_id) % WARP + int(lanes))

        def shuffle(self, mask: int, value: Any, lanes: Any) -> Any:
            """The value of a lane, or of a list of them."""
            mine = self.given.setdefault(mask, [])
            mine.append(value)
            self.syncwarp(mask)
            number, warp = len(mine) - 1, self.warp
            asked = lanes if isinstance(lanes, list) else [lanes]
            values = [warp[lane].given[mask][number] if lane < len(warp) else value for lane in asked]
            return values if asked is lanes else values[0]

    class InTurns(kernel.BlockManager):  # type: ignore[misc]
        def run(self, grid_point: Any, *arguments: Any) -> None:
            width, height, depth = self._block_dim
            places = [(x, y, z) for z, y, x in np.ndindex(depth, height, width)]
            block = kernel.Dim3(*grid_point)
            turns = [
                Turn(lambda: self._f(*arguments), block, kernel.Dim3(*place), number)
                for number, place in enumerate(places)
            ]
            for first in range(0, len(turns), WARP):
                warp = turns[first : first + WARP]
                for turn in warp:
                    turn.warp, turn.group = warp, turns[first // GROUP * GROUP :][:GROUP]
                    turn.going_on = warp[0].going_on
            while turns:
                going = [turn for turn in turns if not turn.meets]
                assert going, "threads are missing where their group waits for them"
                for turn in [turn for turn in going if turn.waits_for] or going:
                    turn.switch()
                turns = [turn for turn in reversed(turns) if not turn.dead]

    return InTurns


def _with_one_array_per_line(shared: Any) -> Any:
    """The simulator's ``cuda.shared``, faster: Numba's inspects the whole stack to find the line of a call."""

    class Shared(shared):  # type: ignore[misc]
        def array(self, shape: Any, dtype: Any, alignment: int | None = None) -> Any:
            if shape == 0:  # dynamic: made before the launch
                return super().array(shape, dtype)
            code, line = (frame := sys._getframe(1)).f_code, frame.f_lineno
            result = self._allocations.get((code, line))
            if result is None:
                result = self._allocations[code, line] = np.empty(shape, str(dtype))
                result.view("u1").fill(POISON)
            return result

    return Shared
