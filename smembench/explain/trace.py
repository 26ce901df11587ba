"""Traces: run the function that is timed and record the address of every memory access.

A copy of the kernel finds a recorder as ``cuda``: arrays have addresses but no content, barriers do nothing, shuffles
give each lane its own value, and threads of a block that take the same path run together
(``smembench.explain.lockstep``). So kernels need no code for traces.
A trace is valid for kernels whose addresses do not depend on the data that they load; all values read are zero.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from linecache import getline, getlines
from math import prod
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from smembench.explain.blocks import divided, kinds_of_blocks, kinds_of_tiles
from smembench.explain.lockstep import Group, run
from smembench.explain.mistakes import Mistake, Unfollowed
from smembench.explain.moved import Moved
from smembench.explain.recorder import AddressArray, Recorder, SharedArray
from smembench.explain.requests import UNSERVED, Accesses, Merged, Request
from smembench.explain.tiles import Matrix, TileAccess
from smembench.kernels.intrinsics.bulk_copy import TILES
from smembench.kernels.intrinsics.clusters import CLUSTER_BLOCKS
from smembench.kernels.intrinsics.traced import OF_MODULE
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import LibraryCall, NumbaKernel
from smembench.kernels.rebound import Rebound
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.formats import carried
from smembench.toolchains.registry import toolchain_of

ATOMICS = ("add", "sub", "and_", "or_", "xor", "inc", "dec", "exch", "max", "min", "cas")
SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
AXES = ("threadIdx", "blockIdx", "blockDim", "gridDim")
ARRAY_SPACING = 2**40
"""Distance in bytes between global arrays: larger than any array, and a multiple of every alignment."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What is traced of a launch.

    Attributes:
        function: a kernel that finds the recorder's ``cuda``, called with ``arguments``.
        grid, block: (x, y) or (x, y, z).
        blocks: the index of each block to trace, and how many of the grid it represents.
    """

    function: Callable[..., None]
    arguments: Sequence[Any]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    blocks: Mapping[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Trace:
    """All accesses of the traced blocks, shared arrays, source file, the blocks' indices, mistakes.

    ``unfollowed`` is what the trace left out because it depends on data. ``merged`` is what the compiler merged, where
    the machine code is known, and ``unmatched`` the (space, kind) of accesses whose widths there are not the source's,
    for a reason that the trace does not show. ``tiles`` counts the accesses to tiles by the TMA and by tensor cores.
    """

    accesses: tuple[Accesses, ...]
    shared: tuple[SharedArray, ...]
    filename: str
    blocks: tuple[tuple[int, ...], ...]
    mistakes: tuple[Mistake, ...] = ()
    unfollowed: tuple[Unfollowed, ...] = ()
    merged: tuple[Merged, ...] = ()
    unmatched: tuple[tuple[str, str], ...] = ()
    tiles: Mapping[TileAccess, int] = field(default_factory=dict)

    @property
    def requests(self) -> list[Request]:
        """The accesses to memory as requests of warps, one by one: many, unlike what ``launch`` makes of them."""
        served = (accesses for accesses in self.accesses if accesses.site.space not in UNSERVED)
        return [request for accesses in served for request in accesses.requests()]

    def reasons(self, *, partial: bool) -> list[str]:
        """Why its figures are no result, by line: mistakes, and unless ``partial`` what it left out."""
        left_out = () if partial else self.unfollowed
        found = [f"line {mistake.line}: {mistake.text}" for mistake in self.mistakes]
        return found + [f"line {each.line}: {each.text}" for each in left_out]

    def source(self, line: int) -> str:
        """A line of the kernel's source; a statement over several lines is joined into one."""
        return _over_several_lines(self.filename).get(line) or getline(self.filename, line).strip()


@cache
def _over_several_lines(filename: str) -> dict[int, str]:
    """The simple statements of a file in Python that span several lines, by their first line."""
    if not filename.endswith(".py"):
        return {}
    tree = ast.parse("".join(getlines(filename)))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    return {node.lineno: ast.unparse(node) for node in found if (node.end_lineno or 0) > node.lineno}


def traceable(kernel: Kernel, case: Case) -> NumbaKernel:
    """The Numba program of a kernel, the only kind that can be traced.

    Raises:
        UsageError: for a library call or a kernel in CUDA C.
    """
    program = kernel.build(case)
    if isinstance(program, LibraryCall):
        raise UsageError(f"{kernel.name}: is a library's copy, not a kernel with source to explain")
    if not isinstance(program, NumbaKernel):
        raise UsageError(f"{kernel.name}: {toolchain_of(program).language} is not traced, only its Numba kernel")
    return program


def trace(
    kernel: Kernel,
    case: Case,
    grid: tuple[int, int] | None = None,
    *,
    ragged: bool = True,
    segments: Sequence[int] | None = None,
    moved: Moved | None = None,
) -> Trace:
    """Trace a CUDA kernel on one block of each kind.

    A small case represents a large one with the same remainders, and its ``grid`` (x, y). If blocks at the edges do not
    differ, it is not ``ragged``, and one block represents all. With ``segments`` as in ``NumbaKernel``, of the large
    case, blocks share tiles as on a GPU. Of ``moved`` loads only lanes that store are traced.

    Raises:
        UsageError: as ``traceable``, and for a kernel that uses parts of ``cuda`` that the recorder lacks.
    """
    program = traceable(kernel, case)
    recorder = Recorder(program.dynamic_bytes, program.function.__code__.co_filename, prod(program.block), moved)
    problem, arguments = PROBLEMS[case.problem], []
    arrays = zip(problem.arrays, problem.lengths(case), problem.array_types(case), strict=True)
    begins = count(ARRAY_SPACING, ARRAY_SPACING)
    for name, length, dtype in arrays:
        space = "constant" if name == program.constant else "global"
        arguments.append(recorder.array(space, name, (length,), next(begins), carried(dtype)))

    @cache
    def of_module(name: str, elements: int, dtype: str) -> AddressArray:
        return recorder.array("global", name, (elements,), next(begins), dtype)

    fake = _fake_cuda(recorder)
    setattr(fake, CLUSTER_BLOCKS, program.cluster)
    setattr(fake, TILES, recorder.tiles)
    setattr(fake, OF_MODULE, of_module)
    fake.atomic.inc = _counting_blocks(fake.blockIdx)
    function = bound_to(fake, program.function)
    whole = grid or program.grid
    scalars = [np.uint32(value) for value in problem.scalars(case)]
    mapped = ((arguments[each.array], each) for each in program.tensor_maps)
    maps = [Matrix(array.name, array.itemsize, each) for array, each in mapped]
    given = [*arguments, *scalars, *maps]
    alike: dict[tuple[int, ...], int] = {(0, 0): prod(whole)}
    if program.tile_of is not None:
        blocks = kinds_of_tiles(program.tile_of, whole, program.cluster, program.parts) if ragged else alike
        launches = [Launch(function, given, (prod(whole), 1), program.block, blocks)]
    elif segments is None:
        blocks = kinds_of_blocks(program.grid, whole, first_differ=program.first_differ) if ragged else alike
        launches = [Launch(function, given, program.grid, program.block, blocks)]
    else:
        launches = [
            Launch(function, given, (parts * prod(program.grid), 1), program.block, blocks)
            for parts, blocks in divided(program.grid, whole, segments, ragged=ragged).items()
        ]
    try:
        traces = [record(launch, recorder, fake, np.uint32) for launch in launches]
        return replace(traces[-1], accesses=tuple(each for found in traces for each in found.accesses))
    except AttributeError as error:
        raise UsageError(f"{kernel.name}: cannot be traced: {error}") from None


def record(launch: Launch, recorder: Recorder, fake: Any, number: Callable[[Any], Any]) -> Trace:
    """Run a kernel on the launch's blocks.

    ``fake`` is the ``cuda`` that the kernel finds, whose indices and dimensions are made by ``number``.
    """
    threads = np.arange(prod(launch.block))
    width, height, _ = _three(launch.block, 1)
    places = [number(axis) for axis in (threads % width, threads // width % height, threads // (width * height))]
    _set(fake.blockDim, map(number, _three(launch.block, 1)))
    _set(fake.gridDim, map(number, _three(launch.grid, 1)))
    accesses: list[Accesses] = []
    for index, weight in launch.blocks.items():
        _set(fake.blockIdx, map(number, _three(index, 0)))

        def kernel(group: Group) -> None:
            recorder.enter(group)
            _set(fake.threadIdx, map(group.number, places))
            launch.function(*launch.arguments)
            recorder.leave()

        with np.errstate(all="ignore"):
            run(len(threads), kernel)
        accesses += recorder.accesses(weight)
    return Trace(
        tuple(accesses),
        tuple(recorder.shared),
        recorder.filename,
        tuple(launch.blocks),
        tuple(sorted(recorder.mistakes)),
        tuple(sorted(recorder.unfollowed)),
        tiles=dict(recorder.tiles.found),
    )


def _three(sides: Sequence[int], default: int) -> tuple[int, ...]:
    return (*sides, default, default)[:3]


def _set(axes: Any, values: Iterable[Any]) -> None:
    axes.x, axes.y, axes.z = values


def _fake_cuda(recorder: Recorder) -> Any:
    return SimpleNamespace(
        **{name: SimpleNamespace() for name in AXES},
        syncthreads=recorder.barrier,
        shared=SimpleNamespace(array=recorder.shared_array),
        const=SimpleNamespace(array_like=recorder.constant_array),
        local=SimpleNamespace(array=_local_array),
        atomic=SimpleNamespace(**dict.fromkeys(ATOMICS, AddressArray.update)),
        threadfence=recorder.fence,
        syncwarp=recorder.sync_warp,
        **dict.fromkeys(SHUFFLES, lambda mask, value, lane: value),
    )


def _counting_blocks(block: Any) -> Callable[[AddressArray, Any, Any], int]:
    """In place of ``cuda.atomic.inc``, from 0 to ``most``: how many blocks were counted in an element before."""
    counted: dict[tuple[str, int], list[int]] = {}

    def increment(array: AddressArray, index: Any, most: Any) -> int:
        array.update(index, most)
        blocks = counted.setdefault((array.name, int(index)), [])
        if block.x not in blocks:  # a thread may repeat what it did
            blocks.append(int(block.x))
        return blocks.index(block.x) % (int(most) + 1)

    return increment


def _local_array(shape: Any, dtype: Any, alignment: int | None = None) -> Any:
    """A thread's own array. Unsigned integers in it are no data, and may be numbers that differ between threads."""
    element = np.dtype(str(dtype))
    return np.zeros(shape, object if element.kind == "u" else element)


def bound_to(fake: Any, function: Callable[..., None]) -> Callable[..., None]:
    """A copy of a kernel, with the functions that it calls, which finds ``fake`` as ``cuda``."""

    def other(value: Any, name: str) -> Any:
        if value is cuda:
            return fake
        return copies.function(value) if isinstance(value, FunctionType) else value

    copies = Rebound(other)
    assert isinstance(function, FunctionType), function
    return copies.function(function)
