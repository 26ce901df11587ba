"""Explain a kernel that is not the package's: any function for ``cuda.jit``, with the arguments of a launch."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from traceback import extract_tb
from types import FunctionType
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from smembench.explain.blocks import kinds_by_work
from smembench.explain.compiled import as_compiled
from smembench.explain.costs import Costs, by_memory, resident_blocks
from smembench.explain.foreign_cuda import Replacements, foreign_cuda
from smembench.explain.foreign_memory import ForeignRecorder
from smembench.explain.idle import idle_requests
from smembench.explain.launch import by_cost
from smembench.explain.mistakes import KINDS
from smembench.explain.requests import NOWHERE
from smembench.explain.tiles import tile_traffic
from smembench.explain.trace import ARRAY_SPACING, Launch, Trace, record
from smembench.explain.traffic import traffic
from smembench.explain.warp import WIDTHS
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.dimensions import Dimensions, as_text, check_launch
from smembench.launches.python_file import plain_function
from smembench.launches.tensor_map_argument import TensorMapArgument
from smembench.model.errors import SmembenchError, UsageError
from smembench.model.hardware import WARP
from smembench.model.text import number_of
from smembench.toolchains.machine_code import MachineCode, parse
from smembench.toolchains.numba_function import function_code


def explain_function(
    function: Any,
    *,
    grid: Dimensions,
    block: Dimensions,
    arguments: Sequence[Argument],
    shared_bytes: int = 0,
    capability: str | None = None,
) -> Costs:
    """Trace a kernel on one block of each kind, and add up what its accesses cost.

    ``shared_bytes`` is the dynamic shared memory of a launch. Loops are traced whole. With a ``capability`` the
    accesses are those of the machine code for it, if the compiler's libraries are installed and it takes the kernel.

    Raises:
        UsageError: for what is no kernel, arguments that it does not take, a grid or a block that no GPU takes, an
            unknown compute capability, and a kernel that uses what cannot be traced or does too much.
    """
    plain = plain_function(function)
    if plain is None:
        raise UsageError(f"{function!r}: is not a kernel; give a function, with or without cuda.jit")
    check_launch(grid, block)
    recorder = ForeignRecorder(shared_bytes, plain.__code__.co_filename, prod(block))
    named = _named(plain, arguments)
    launch = Launch(
        function=Replacements(recorder, fake := foreign_cuda(recorder)).function(plain),
        arguments=[_in_memory(recorder, name, value, number) for number, (name, value) in enumerate(named.items(), 1)],
        grid=grid,
        block=block,
        blocks={},
    )
    traced = _traced(launch, recorder, fake, plain.__name__)
    code = None
    if capability is not None and (code := _machine_code(function, [*named.values()], capability)) is not None:
        (traced,) = as_compiled([traced], code.memory)
    return costs_of(
        traced,
        f"{plain.__name__} in {Path(traced.filename).name} · grid {as_text(grid)} · block {as_text(block)}",
        sizes={name: a.element_bytes for name, a in named.items() if isinstance(a, ArrayArgument)},
        shared_bytes=max((array.base + array.bytes for array in traced.shared), default=shared_bytes),
        launched=(prod(grid), prod(block)),
        code=(capability, code),
    )


def costs_of(
    traced: Trace,
    title: str,
    *,
    sizes: Mapping[str, int],
    shared_bytes: int,
    launched: tuple[int, int],
    code: tuple[str | None, MachineCode | None],
) -> Costs:
    """What the accesses of a traced launch cost.

    Args:
        traced: with the accesses that the machine code has, where it is known.
        title: the kernel, its file, and how it is launched.
        sizes: bytes of the global arrays by name.
        shared_bytes: shared memory of a block.
        launched: blocks of the grid, and threads of a block.
        code: a compute capability, and what the kernel is compiled to for it, where they are known.

    Raises:
        UsageError: for an unknown compute capability.
    """
    capability, machine_code = code
    blocks, threads = launched
    requests = list(by_cost(traced).values())
    idle: Mapping[str, int] = {}
    if machine_code is not None and not traced.unfollowed:
        idle = idle_requests(traced, requests, machine_code, blocks * -(-threads // WARP))
    return Costs(
        title=title,
        pad=0,
        trace=traced,
        **by_memory(traced, requests)._asdict(),
        traffic=traffic(sizes, requests),
        tiles=tile_traffic(traced.tiles, traced.source),
        shared_bytes=shared_bytes,
        threads=threads,
        code=machine_code,
        occupancy=resident_blocks(capability, threads, shared_bytes, machine_code),
        idle=idle,
    )


def _machine_code(function: Any, arguments: Sequence[Argument], capability: str) -> MachineCode | None:
    like = [_like(each) if isinstance(each, ArrayArgument) else each for each in arguments]
    try:
        return parse(*function_code(function, like, capability))
    except Exception:  # a missing library or the compiler raises its own; explanations work without machine code
        return None


def _like(argument: ArrayArgument) -> NDArray[Any]:
    """An array of the same layout, which Numba compiles for, without its memory."""
    return as_strided(np.empty(1, argument.dtype), argument.shape, argument.steps)


def _named(function: FunctionType, arguments: Sequence[Argument]) -> Mapping[str, Argument]:
    """The arguments by the kernel's names."""
    try:
        bound = inspect.signature(function).bind(*arguments)
    except TypeError:
        names = ", ".join(inspect.signature(function).parameters)
        given = number_of(len(arguments), "argument")
        raise UsageError(f"{function.__name__}: takes ({names}), not {given}; give one for each name") from None
    bound.apply_defaults()
    return bound.arguments


def _in_memory(recorder: ForeignRecorder, name: str, argument: Argument, number: int) -> Any:
    if isinstance(argument, TensorMapArgument):
        raise UsageError(f"{name}: a tensor map is no argument of a Numba kernel; give an array")
    if not isinstance(argument, ArrayArgument):
        return argument
    if argument.dtype.itemsize not in WIDTHS or argument.dtype.kind not in "biufc":
        raise UsageError(f"{name}: elements of type {argument.dtype} are not traced; give a type of numbers")
    return recorder.argument(name, argument, number * ARRAY_SPACING + argument.begin)


def _traced(launch: Launch, recorder: ForeignRecorder, fake: Any, name: str) -> Trace:
    """The trace of a launch on a block of each kind.

    Raises:
        UsageError: with the line, for anything that the kernel raises.
    """
    blocks: dict[Dimensions, Trace] = {}

    def work(index: Dimensions) -> Hashable:
        """How many threads a block has at each place of an access."""
        blocks[index] = record(replace(launch, blocks={index: 1}), recorder, fake, np.int64)
        return frozenset((each.site, np.count_nonzero(each.addresses != NOWHERE)) for each in blocks[index].accesses)

    try:
        kinds = kinds_by_work(launch.grid, work)
        for index in kinds:
            if index not in blocks:
                work(index)
    except SmembenchError as error:
        raise UsageError(f"{name}: {error}") from None
    except Exception as error:
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == recorder.filename]
        where = f", line {lines[-1]}" if lines else ""
        raise UsageError(f"{name}{where}: cannot be traced: {type(error).__name__}: {error}") from None
    of_kinds = (each._replace(weight=kinds[index]) for index in kinds for each in blocks[index].accesses)
    traced = replace([*blocks.values()][-1], accesses=tuple(of_kinds), blocks=tuple(kinds))
    # Behind a branch that was not followed threads may store what others load, and reach a barrier.
    certain = ("outside", "race") if traced.unfollowed else KINDS
    first = {(each.line, each.kind): each for each in reversed(traced.mistakes) if each.kind in certain}
    return replace(traced, mistakes=tuple(sorted(first.values())))
