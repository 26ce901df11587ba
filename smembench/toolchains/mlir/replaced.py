"""Lowerings in place of numba-cuda-mlir's own, where it has none or computes otherwise than Numba."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

from llvmlite import ir

from smembench.kernels.intrinsics.declaration import BYTES, types
from smembench.kernels.intrinsics.lowering import WIDE, WORD
from smembench.kernels.intrinsics.unsigned import common
from smembench.toolchains.mlir.intrinsics import (
    assembled,
    compared,
    lowered_by,
    operation,
    ours,
    populate,
    value_of,
    value_type,
)

_UNSIGNED: dict[Callable[..., Any], str] = {
    operator.floordiv: "udiv", operator.ifloordiv: "udiv", operator.mod: "urem", operator.imod: "urem",
    operator.rshift: "lshr", operator.irshift: "lshr", min: "intr.umin", max: "intr.umax",
    operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=",
}  # fmt: skip
"""Operations that numba-cuda-mlir takes for signed unless both operands are unsigned, or always: of ``llvm``."""
_SHUFFLES = {"shfl_sync": "idx", "shfl_up_sync": "up", "shfl_down_sync": "down", "shfl_xor_sync": "bfly"}
"""The mode of PTX's ``shfl`` by the function's name."""
_WIDE_SHUFFLE = (
    "{{ .reg .b32 low, high; mov.b64 {{low, high}}, $1; shfl.sync.{mode}.b32 low, low, $2, {clamp}, $3; "
    "shfl.sync.{mode}.b32 high, high, $2, {clamp}, $3; mov.b64 $0, {{low, high}}; }}"
)


@cache
def made_in_kernels(struct: type[tuple[Any, ...]]) -> None:
    """Let kernels make a named tuple, whose making numba-cuda-mlir types and does not lower."""

    def lowering(compiler: Any, target: Any, args: Sequence[Any], kwargs: Any) -> None:
        compiler.store_var(target, tuple(map(compiler.load_var, args)))

    lowered_by(struct, lowering)


@cache
def fences_in_kernels() -> None:
    """Let kernels call ``cuda.threadfence``, which numba-cuda-mlir types and does not lower."""
    from numba_cuda_mlir import cuda

    def lowering(compiler: Any, target: Any, args: Sequence[Any], kwargs: Any) -> None:
        texts = {"asm_string": json.dumps("membar.gl;"), "constraints": json.dumps("~{memory}")}
        operation("inline_asm", None, **texts, has_side_effects="unit")
        compiler.store_var(target, None)

    lowered_by(cuda.threadfence, lowering)


def _unsigned(name: str, kind: Any) -> Callable[..., None]:
    """The lowering of an operation of ``_UNSIGNED``, computed in an unsigned type."""

    def lowering(compiler: Any, target: Any, args: Sequence[Any], kwargs: Any) -> None:
        one, other = (value_of(ours(kind), compiler.load_var(arg)) for arg in args)
        made = compared(name, one, other) if name in "<=>=" else operation(name, one.type, one, other)
        compiler.store_var(target, made.mlir)

    return lowering


def _shuffle(mode: str) -> Callable[..., None]:
    """The lowering of a shuffle of 64 bits, which numba-cuda-mlir passes through 32."""

    def lowering(compiler: Any, target: Any, args: Sequence[Any], kwargs: Any) -> None:
        kinds = types.uint32, ours(compiler.get_numba_type(target.name)), types.uint32
        mask, value, lane = (value_of(kind, compiler.load_var(arg)) for kind, arg in zip(kinds, args, strict=True))
        letter = "d" if isinstance(kinds[1], types.Float) else "l"
        text = _WIDE_SHUFFLE.format(mode=mode, clamp=0 if mode == "up" else 31)
        function = ir.FunctionType(value.type, [value.type, WORD, WORD])
        assembly = ir.InlineAsm(function, text, f"={letter},{letter},r,r", side_effect=True)
        compiler.store_var(target, assembled(assembly, [value, lane, mask]).mlir)

    return lowering


def _shared_array(own: Callable[..., None], compiler: Any, target: Any, args: Sequence[Any], kwargs: Any) -> None:
    """The lowering of ``cuda.shared.array``: with size 0 all of the dynamic shared memory, as in Numba; else its own.

    numba-cuda-mlir lets a second such array begin where the first ends. Its first one has a symbol of a byte, not an
    external one, so that the linker may place it before the static arrays, into which it then reaches.
    """
    size, alignment = (_literal(compiler, argument) for argument in (args[0], dict(kwargs).get("alignment", args[-1])))
    if size != 0:
        own(compiler, target, args, kwargs)
        return
    kind = ours(compiler.get_numba_type(target.name))
    element = value_type(kind.dtype)
    memory = ir.GlobalVariable(ir.Module(), ir.ArrayType(ir.IntType(8), 0), "dynamic_shared", addrspace=3)
    memory.align = alignment or BYTES
    size = assembled(ir.InlineAsm(ir.FunctionType(WORD, []), "mov.u32 $0, %dynamic_smem_size;", "=r"), [])
    count = operation("udiv", WORD, size, WORD(kind.dtype.bitwidth // 8))
    array = SimpleNamespace()
    data = operation("addrspacecast", element.as_pointer(), memory)
    populate(array, data=data, shape=[operation("zext", WIDE, count)])
    compiler.store_var(target, array._getvalue())


def _literal(compiler: Any, argument: Any) -> Any:
    """The value of an argument that is a constant; None for another."""
    return getattr(compiler.get_numba_type(argument.name), "literal_value", None)


class Lowerings:
    """The lowerings of an operation: one is chosen by the types of its arguments, which may be its own.

    Args:
        choose: the lowering, by the arguments' types and ``find`` of the operation's own.
        others: its own ones.
    """

    def __init__(self, choose: Callable[[Any, Any], Any], others: Any) -> None:
        self._choose, self._others = choose, others

    def find(self, args: Any) -> Any:
        """The lowering for arguments of these types."""
        return self._choose(args, self._others.find)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._others, name)


def replaced(definitions: Any, theirs: Any) -> dict[Any, Lowerings]:
    """The lowerings of the operations that are lowered otherwise, of those of all, by operation.

    Args:
        definitions: by operation, their own lowerings.
        theirs: the module of their types.
    """
    from numba_cuda_mlir import cuda

    def of_unsigned(name: str, args: Any, own: Any) -> Any:
        kind = common(args[0], args[1], theirs) if len(args) == 2 else None
        return _unsigned(name, kind) if kind else own(args)

    def of_64_bits(mode: str, args: Any, own: Any) -> Any:
        return _shuffle(mode) if getattr(args[1], "bitwidth", 0) == 64 else own(args)

    chosen: dict[Any, Any] = {operation: partial(of_unsigned, name) for operation, name in _UNSIGNED.items()}
    chosen |= {getattr(cuda, name): partial(of_64_bits, mode) for name, mode in _SHUFFLES.items()}
    chosen[cuda.shared.array] = lambda args, own: partial(_shared_array, own(args))
    return {operation: Lowerings(choose, definitions[operation]) for operation, choose in chosen.items()}
