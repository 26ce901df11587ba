"""Traces: run the function that is timed and record the address of every memory access.

The kernel's ``cuda`` is replaced by a recorder: arrays have addresses but no content, barriers do nothing, and threads
of a block that take the same path run together (``smembench.explain.lockstep``). So kernels need no code for traces.
A trace is valid for kernels whose addresses do not depend on the data that they load; all values read are zero.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from linecache import getline, getlines
from math import prod
from types import FrameType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smembench.explain.lockstep import Group, run
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import LibraryCall, NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE
from smembench.toolchains.registry import toolchain_of

_NOWHERE = -1
"""In place of the address of an inactive lane."""

_GLOBAL_GAP = 2**40
"""Distance in bytes between global arrays: larger than any array, and a multiple of every alignment."""


@dataclass(frozen=True, slots=True)
class AccessSite:
    """A memory access in the source.

    Attributes:
        line: in the kernel's file.
        space: ``shared``, ``constant`` or ``global``.
        kind: ``load`` or ``store``.
        array: the problem's name for it, or shared0, shared1, constant0 …
        width: bytes per lane.
    """

    line: int
    space: str
    kind: str
    array: str
    width: int


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A shared array of the kernel; ``base`` is the byte at which it begins."""

    name: str
    shape: tuple[int, ...]
    itemsize: int
    base: int

    @property
    def bytes(self) -> int:
        """Its size in bytes."""
        return prod(self.shape) * self.itemsize


@dataclass(frozen=True, slots=True)
class Request:
    """One access by one warp: a byte address per lane, None for inactive lanes.

    ``weight`` is the number of requests, of the grid or of a launch, that it stands for.
    """

    site: AccessSite
    warp: int
    addresses: tuple[int | None, ...]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Trace:
    """All requests of the traced blocks, the shared arrays, the source file, and the blocks' indices (x, y)."""

    requests: tuple[Request, ...]
    shared: tuple[SharedArray, ...]
    filename: str
    blocks: tuple[tuple[int, int], ...]

    def source(self, line: int) -> str:
        """A line of the kernel's source; a statement over several lines is joined into one."""
        return _over_several_lines(self.filename).get(line) or getline(self.filename, line).strip()


@cache
def _over_several_lines(filename: str) -> dict[int, str]:
    """The simple statements of a file that span several lines, by their first line."""
    tree = ast.parse("".join(getlines(filename)))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    return {node.lineno: ast.unparse(node) for node in found if (node.end_lineno or 0) > node.lineno}


class _Recorder:
    """Records the addresses of the group of threads that runs."""

    def __init__(self, dynamic_bytes: int, filename: str, threads: int) -> None:
        self.filename = filename
        self.shared: list[SharedArray] = []
        self._dynamic_bytes = dynamic_bytes
        self._warps = -(-threads // WARP)
        self._found: dict[tuple[AccessSite, int], NDArray[np.int64]] = {}
        self._group = Group(np.arange(threads))
        self._counts: dict[AccessSite, int] = {}
        self._arrays = 0
        self._constants = 0

    def enter(self, group: Group) -> None:
        """Begin with a group of threads."""
        self._group = group
        self._counts = {}
        self._arrays = self._constants = 0

    def note(self, site: AccessSite, address: Any) -> None:
        """Record an access: a thread's n-th access at a site belongs to its warp's n-th request there."""
        count = self._counts[site] = self._counts.get(site, -1) + 1
        found = self._found.get((site, count))
        if found is None:
            found = self._found[site, count] = np.full((self._warps, WARP), _NOWHERE)
        found.reshape(-1)[self._group.threads[self._group.going]] = self._group.own(address)

    def requests(self, weight: int) -> list[Request]:
        """The current block's requests, warp by warp; afterwards the next block begins."""
        found, self._found = self._found, {}
        return [
            Request(site, warp, tuple(None if at == _NOWHERE else at for at in addresses[warp].tolist()), weight)
            for warp in range(self._warps)
            for (site, _), addresses in found.items()
            if (addresses[warp] != _NOWHERE).any()
        ]

    def shared_array(self, shape: Any, dtype: Any, alignment: int | None = None) -> _Array:
        """In place of ``cuda.shared.array``: every thread's n-th call returns the same array."""
        index, self._arrays = self._arrays, self._arrays + 1
        if index == len(self.shared):
            size = int(dtype.bitwidth) // 8
            sides = shape if isinstance(shape, tuple) else (shape,)
            if sides == (0,):  # dynamic: the launch decides the length
                sides = (self._dynamic_bytes // size,)
            end = self.shared[-1].base + self.shared[-1].bytes if self.shared else 0
            step = max(alignment or 0, size)
            self.shared.append(SharedArray(f"shared{index}", sides, size, -(-end // step) * step))
        array = self.shared[index]
        return _Array(self, "shared", array.name, array.shape, array.itemsize, array.base, str(dtype))

    def constant_array(self, like: Any) -> _Array:
        """In place of ``cuda.const.array_like``."""
        name, self._constants = f"constant{self._constants}", self._constants + 1
        return _Array(self, "constant", name, like.shape, like.itemsize, 0, str(like.dtype))


class _Array:
    """An array with addresses but no content."""

    def __init__(
        self, recorder: _Recorder, space: str, name: str, shape: tuple[int, ...], itemsize: int, base: int, dtype: str
    ) -> None:
        self._recorder = recorder
        self._space, self._name, self.itemsize, self._base = space, name, itemsize, base
        self._strides = [itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))]
        self._zero = np.zeros((), dtype)[()]

    def _note(self, index: Any, kind: str) -> int:
        """Record an access and return its number of elements; a slice is a single, wider access."""
        count = 1
        if isinstance(index, slice):
            index, count = index.start, int(index.stop - index.start)
        indices = index if isinstance(index, tuple) else (index,)
        offset = sum(_signed(i) * stride for i, stride in zip(indices, self._strides, strict=True))
        line = _line_in(self._recorder.filename, sys._getframe(2))
        site = AccessSite(line, self._space, kind, self._name, count * self.itemsize)
        self._recorder.note(site, self._base + offset)
        return count

    def __getitem__(self, index: Any) -> Any:
        count = self._note(index, "load")
        return (self._zero,) * count if isinstance(index, slice) else self._zero

    def __setitem__(self, index: Any, value: Any) -> None:
        self._note(index, "store")


def _signed(index: Any) -> Any:
    """An index, or one per thread, in a type that no address overflows."""
    return index.astype(np.int64) if isinstance(index, np.ndarray) else int(index)


def _line_in(filename: str, frame: FrameType) -> int:
    """The line of the nearest frame in the kernel's file; if a helper made the access, the line of its call."""
    nearest: FrameType | None = frame
    while nearest is not None and nearest.f_code.co_filename != filename:
        nearest = nearest.f_back
    return (nearest or frame).f_lineno


def kinds_of_blocks(grid: tuple[int, int], like: tuple[int, int]) -> dict[tuple[int, int], int]:
    """The blocks of a small ``grid`` that represent those of a large grid ``like`` it, with the number of each kind.

    The kinds are inside, right edge, bottom edge and corner: with ragged sizes blocks differ in little else. A block in
    the middle represents those inside, since some kernels do more work at the upper and left edges, too.
    """
    columns, rows = (
        {(traced - 1) // 2: count - 1, traced - 1: 1} if count > 1 else {0: 1}
        for traced, count in zip(grid, like, strict=True)
    )
    return {(x, y): across * down for x, across in columns.items() for y, down in rows.items()}


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


def trace(kernel: Kernel, case: Case, grid: tuple[int, int] | None = None, *, ragged: bool = True) -> Trace:
    """Trace a CUDA kernel on one block of each kind.

    Args:
        kernel: the kernel.
        case: sizes and block to trace; a small case represents a large one with the same remainders.
        grid: the grid (x, y) that the trace represents; the case's own if None.
        ragged: whether blocks at the edges differ; if not, one block represents all.

    Raises:
        UsageError: as ``traceable``, and for a kernel that uses parts of ``cuda`` that the recorder lacks.
    """
    program = traceable(kernel, case)
    width, height = program.block
    recorder = _Recorder(program.dynamic_bytes, program.function.__code__.co_filename, width * height)
    problem, size = PROBLEMS[case.problem], ITEMSIZE[case.dtype]
    arrays = []
    for number, name in enumerate(problem.arrays, 1):
        space = "constant" if name == program.constant else "global"
        arrays.append(_Array(recorder, space, name, (1,), size, number * _GLOBAL_GAP, case.dtype))
    scalars = [np.uint32(value) for value in problem.scalars(case)]
    whole = grid or program.grid
    blocks = kinds_of_blocks(program.grid, whole) if ragged else {(0, 0): prod(whole)}
    y, x = np.divmod(np.arange(width * height), width)
    requests: list[Request] = []
    for block, weight in blocks.items():
        fake = _fake_cuda(recorder, program.block, program.grid, block)

        def kernel_of(group: Group, fake: Any = fake) -> None:
            recorder.enter(group)
            fake.threadIdx = SimpleNamespace(x=group.number(x), y=group.number(y), z=0)
            program.function(*arrays, *scalars)

        with _replaced(fake), np.errstate(over="ignore"):
            try:
                run(width * height, kernel_of)
            except AttributeError as error:
                raise UsageError(f"{kernel.name}: cannot be traced: {error}") from None
        requests += recorder.requests(weight)
    return Trace(tuple(requests), tuple(recorder.shared), recorder.filename, tuple(blocks))


def _fake_cuda(recorder: _Recorder, block: tuple[int, int], grid: tuple[int, int], index: tuple[int, int]) -> Any:
    def axes(x: int, y: int) -> SimpleNamespace:
        return SimpleNamespace(x=x, y=y, z=0)

    return SimpleNamespace(
        blockDim=axes(*block),
        gridDim=axes(*grid),
        blockIdx=axes(*index),
        threadIdx=axes(0, 0),
        syncthreads=lambda: None,
        shared=SimpleNamespace(array=recorder.shared_array),
        const=SimpleNamespace(array_like=recorder.constant_array),
        local=SimpleNamespace(array=lambda shape, dtype, alignment=None: np.zeros(shape, str(dtype))),
    )


@contextmanager
def _replaced(fake: Any) -> Iterator[None]:
    """Replace ``cuda`` by ``fake`` in every module of this package, where kernels look it up."""
    real = cuda  # this module's is replaced as well
    holders = [module for module in list(sys.modules.values()) if getattr(module, "cuda", None) is real]
    namespaces = [vars(module) for module in holders if module.__name__.startswith("smembench")]
    try:
        for namespace in namespaces:
            namespace["cuda"] = fake
        yield
    finally:
        for namespace in namespaces:
            namespace["cuda"] = real
