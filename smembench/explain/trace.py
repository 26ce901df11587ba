"""Traces: run the function that is timed and record the address of every memory access.

The kernel's ``cuda`` is replaced by a recorder: arrays have addresses but no content, barriers do nothing, shuffles
give each lane its own value, and threads of a block that take the same path run together
(``smembench.explain.lockstep``). So kernels need no code for traces.
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
from types import SimpleNamespace
from typing import Any

import numpy as np

from smembench.explain.lockstep import Group, run
from smembench.explain.mistakes import Mistake
from smembench.explain.recorder import AddressArray, Recorder, Request, SharedArray
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import LibraryCall, NumbaKernel
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.problem import ITEMSIZE
from smembench.toolchains.registry import toolchain_of

_ATOMICS = ("add", "sub", "and_", "or_", "xor", "inc", "dec", "exch", "max", "min", "cas")
_SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
ARRAY_SPACING = 2**40
"""Distance in bytes between global arrays: larger than any array, and a multiple of every alignment."""


@dataclass(frozen=True, slots=True)
class Trace:
    """All requests of the traced blocks, shared arrays, source file, the blocks' indices (x, y), and mistakes."""

    requests: tuple[Request, ...]
    shared: tuple[SharedArray, ...]
    filename: str
    blocks: tuple[tuple[int, int], ...]
    mistakes: tuple[Mistake, ...] = ()

    def source(self, line: int) -> str:
        """A line of the kernel's source; a statement over several lines is joined into one."""
        return _over_several_lines(self.filename).get(line) or getline(self.filename, line).strip()


@cache
def _over_several_lines(filename: str) -> dict[int, str]:
    """The simple statements of a file that span several lines, by their first line."""
    tree = ast.parse("".join(getlines(filename)))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body")]
    return {node.lineno: ast.unparse(node) for node in found if (node.end_lineno or 0) > node.lineno}


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

    A small case represents a large one with the same remainders, and its ``grid`` (x, y). If blocks at the edges do not
    differ, it is not ``ragged``, and one block represents all.

    Raises:
        UsageError: as ``traceable``, and for a kernel that uses parts of ``cuda`` that the recorder lacks.
    """
    program = traceable(kernel, case)
    width, height = program.block
    recorder = Recorder(program.dynamic_bytes, program.function.__code__.co_filename, width * height)
    problem, size = PROBLEMS[case.problem], ITEMSIZE[case.dtype]
    arrays = []
    for number, (name, length) in enumerate(zip(problem.arrays, problem.lengths(case), strict=True), 1):
        space = "constant" if name == program.constant else "global"
        arrays.append(AddressArray(recorder, space, name, (length,), size, number * ARRAY_SPACING, case.dtype))
    scalars = [np.uint32(value) for value in problem.scalars(case)]
    whole = grid or program.grid
    blocks = kinds_of_blocks(program.grid, whole) if ragged else {(0, 0): prod(whole)}
    y, x = np.divmod(np.arange(width * height, dtype=np.uint32), width)
    requests: list[Request] = []
    for block, weight in blocks.items():
        fake = _fake_cuda(recorder, program.block, program.grid, block)

        def kernel_of(group: Group, fake: Any = fake) -> None:
            recorder.enter(group)
            fake.threadIdx = SimpleNamespace(x=group.number(x), y=group.number(y), z=np.uint32(0))
            program.function(*arrays, *scalars)
            recorder.leave()

        with replaced(fake), np.errstate(over="ignore"):
            try:
                run(width * height, kernel_of)
            except AttributeError as error:
                raise UsageError(f"{kernel.name}: cannot be traced: {error}") from None
        requests += recorder.requests(weight)
    return Trace(
        tuple(requests), tuple(recorder.shared), recorder.filename, tuple(blocks), tuple(sorted(recorder.mistakes))
    )


def _fake_cuda(recorder: Recorder, block: tuple[int, int], grid: tuple[int, int], index: tuple[int, int]) -> Any:
    def axes(x: int, y: int) -> SimpleNamespace:
        return SimpleNamespace(x=np.uint32(x), y=np.uint32(y), z=np.uint32(0))

    return SimpleNamespace(
        blockDim=axes(*block),
        gridDim=axes(*grid),
        blockIdx=axes(*index),
        threadIdx=axes(0, 0),
        syncthreads=recorder.barrier,
        shared=SimpleNamespace(array=recorder.shared_array),
        const=SimpleNamespace(array_like=recorder.constant_array),
        local=SimpleNamespace(array=lambda shape, dtype, alignment=None: np.zeros(shape, str(dtype))),
        atomic=SimpleNamespace(**dict.fromkeys(_ATOMICS, AddressArray.update)),
        syncwarp=recorder.sync_warp,
        **dict.fromkeys(_SHUFFLES, lambda mask, value, lane: value),
    )


@contextmanager
def replaced(fake: Any, *others: dict[str, Any]) -> Iterator[None]:
    """Replace ``cuda`` by ``fake`` in every module of this package, and in other namespaces, where kernels find it."""
    real = cuda  # this module's is replaced as well
    holders = [module for module in list(sys.modules.values()) if getattr(module, "cuda", None) is real]
    namespaces = [vars(module) for module in holders if module.__name__.startswith("smembench")]
    namespaces += [namespace for namespace in others if namespace.get("cuda") is real and namespace not in namespaces]
    try:
        for namespace in namespaces:
            namespace["cuda"] = fake
        yield
    finally:
        for namespace in namespaces:
            namespace["cuda"] = real
