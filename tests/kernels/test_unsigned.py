"""The types of index arithmetic in kernels: Numba, the simulator and the tracer agree, since all follow NumPy 2."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import types

from smembench.kernels.numba_cuda import cuda, uint32
from smembench.toolchains.nvvm import compiled, compiling

NAMES = "add sub mul floordiv mod and_ or_ xor lshift rshift lt le gt ge eq ne"
OPERATIONS: list[Callable[[Any, Any], Any]] = [*(getattr(operator, name) for name in NAMES.split()), min, max]
OPERANDS = {
    "two uint32": (types.uint32, types.uint32),
    "uint32 and a loop variable": (types.uint32, types.int64),
    "a loop variable and uint32": (types.int64, types.uint32),
    "uint64 and a loop variable": (types.uint64, types.int64),
    "uint32 and uint64": (types.uint32, types.uint64),
}


def in_numba(function: Callable[..., Any], operands: tuple[Any, ...]) -> str:
    """The type of a device function's result."""
    with compiling(function):
        return str(cuda.compile_ptx(function, operands, device=True, cc=(9, 0))[1]).replace("boolean", "bool")


def in_python(value: Any) -> str:
    return str(np.asarray(value).dtype)


@pytest.mark.parametrize("operands", OPERANDS.values(), ids=OPERANDS)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_numba_gives_the_type_that_numpy_gives(operation: Callable[..., Any], operands: tuple[Any, Any]) -> None:
    values = tuple(6 if kind == types.int64 else np.dtype(str(kind)).type(6) for kind in operands)
    # min and max of Python return one of two values as it is; the other decides about its type all the same.
    wanted = operator.add(*values) if operation in (min, max) else operation(*values)
    assert in_numba(lambda one, other: operation(one, other), operands) == in_python(wanted)


@pytest.mark.parametrize("operation", [operator.iadd, operator.isub, operator.imul, operator.ilshift])
def test_a_literal_adapts_in_place_too(operation: Callable[..., Any]) -> None:
    assert in_numba(lambda one: operation(one, 3), (types.uint32,)) == "uint32"
    assert in_numba(lambda one: operation(one, 3), (types.uint64,)) == "uint64"


@pytest.mark.parametrize("literal", [-1, 2**32])
def test_a_literal_that_does_not_fit_is_an_error_in_numba_too(literal: int) -> None:
    with pytest.raises(OverflowError, match="out of bounds for uint32"):
        np.uint32(5) + literal
    with pytest.raises(Exception, match="out of bounds for uint32"):
        in_numba(lambda one: one + literal, (types.uint32,))


def test_thread_and_block_indices_are_uint32_in_numba() -> None:
    assert in_numba(lambda: cuda.threadIdx.x, ()) == in_numba(lambda: cuda.gridDim.y, ()) == "uint32"
    assert in_numba(lambda: cuda.blockIdx.x * 32 + cuda.threadIdx.x, ()) == "uint32"


@pytest.mark.parametrize(("one", "other"), [(3, 5), (2**32 - 1, 7), (2**16, 2**17)])
@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul], ids=lambda one: one.__name__)
def test_results_wrap_around_at_32_bits(operation: Callable[..., Any], one: int, other: int) -> None:
    def kernel(out: Any) -> None:  # of constants, so that the compiled program stores the result itself
        out[0] = operation(uint32(one), uint32(other))

    wanted = operation(one, other) % 2**32
    text = compiled(kernel, (types.uint32[::1],), (9, 0), at_link_time=False).decode()
    stored = {int(number) % 2**32 for number in re.findall(r"mov\.(?:b|u)32\s+%r\d+, (-?\d+);", text)}
    with np.errstate(over="ignore"):
        assert int(operation(np.uint32(one), np.uint32(other))) == wanted
    assert wanted in stored, text


def test_the_rule_is_for_one_kernel_alone() -> None:
    """A function that Numba compiles meanwhile, since the kernel calls it, is kept for other kernels."""

    def other(one: Any, two: Any) -> Any:
        return one + two

    with compiling(in_numba):
        assert str(cuda.compile_ptx(other, (types.uint32, types.uint32), device=True, cc=(9, 0))[1]) == "uint64"
    assert in_numba(other, (types.uint32, types.uint32)) == "uint32"
    assert str(cuda.compile_ptx(other, (types.uint32, types.uint32), device=True, cc=(9, 0))[1]) == "uint64"


def test_what_numba_learns_of_an_operation_while_it_compiles_stays_without_the_rule() -> None:
    """Modules that it loads meanwhile add their own templates to the same function type."""
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.typing.templates import ConcreteTemplate

    class Learned(ConcreteTemplate):  # type: ignore[misc]
        key, cases = operator.iadd, ()

    context = cuda_target.typing_context
    with compiling():
        before = context.resolve_value_type(operator.iadd)
    with compiling(in_numba):
        meanwhile = context.resolve_value_type(operator.iadd)
        context._remove_global(operator.iadd)
        context.insert_global(operator.iadd, meanwhile.augment(types.Function(Learned)))
    assert context.resolve_value_type(operator.iadd).templates == (*before.templates, Learned)
    context._remove_global(operator.iadd)
    context.insert_global(operator.iadd, before)
