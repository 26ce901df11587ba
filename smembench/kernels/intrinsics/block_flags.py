"""Release/acquire flags in global memory: one block waits for another's partial sums, without the host in between.

A block raises its own flag when its sums are written. The next block waits for that flag and lowers it, so every launch
finds all flags down. A persistent grid, whose blocks all run at once, terminates in whatever order they start. So does
a larger one where the GPU starts the block before no later, which CUDA does not promise.

The flags are a variable of the module, as ``__device__ unsigned flags[4096];`` in CUDA C, zero when it is loaded. One
thread stores with release and loads with acquire semantics at the scope of the GPU (PTX ISA, "Memory Consistency
Model"); barriers before the store and after the load extend that to all threads of both blocks.

In the simulator the functions do nothing: blocks run in order. A trace has flags to store to, and to load once.
"""

from __future__ import annotations

from llvmlite import ir

from smembench.kernels.intrinsics.lowering import Context, Signature, Type, Typer, Values, assemble, register, types
from smembench.kernels.intrinsics.traced import load_waiting, of_module, traced
from smembench.kernels.intrinsics.vector import pointer_to
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.types import Array, Index, Scalar

MOST_BLOCKS = 4096
"""Most blocks of a grid: the number of flags."""

_VARIABLE, _GLOBAL_SPACE, _BYTES = "smembench_block_flags", 1, 4


def raise_flag(block: Index) -> None:
    """Raise this block's flag (``st.release``); by one thread, after a barrier that follows the writes of all."""
    if traced():
        _flags()[block] = 1


def wait_for_flag(block: Index) -> None:
    """Wait for a block's flag (``ld.acquire``) and lower it; by one thread, before a barrier for the others."""
    if traced():
        _flags()[block] = load_waiting(_flags(), block)


def accumulate(array: Array, index: Index, value: Scalar) -> None:
    """Add to an element in global memory without loading it.

    ``red.global.add`` of PTX, which takes subnormal numbers of single precision for zero.
    """
    if traced():
        cuda.atomic.add(array, index, value)
    else:
        array[index] += value


def _flags() -> Array:
    return of_module("block_flags", MOST_BLOCKS, "uint32")


def _type(_context: Context) -> Typer:
    return lambda block: types.void


def _flag(builder: ir.IRBuilder, block: ir.Value) -> ir.Value:
    space = ir.ArrayType(ir.IntType(8 * _BYTES), MOST_BLOCKS)
    variable = builder.module.globals.get(_VARIABLE)
    if variable is None:
        variable = ir.GlobalVariable(builder.module, space, _VARIABLE, addrspace=_GLOBAL_SPACE)
        variable.initializer, variable.align, variable.linkage = ir.Constant(space, None), _BYTES, "internal"
    first = builder.ptrtoint(builder.addrspacecast(variable, space.as_pointer()), ir.IntType(64))
    place = builder.zext(block, ir.IntType(64)) if block.type.width < 64 else block
    return builder.add(first, builder.mul(place, ir.Constant(ir.IntType(64), _BYTES)))


def _lower_raise_flag(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    assemble(builder, "st.release.gpu.global.u32 [$0], 1;", "l,", _flag(builder, *args))
    return context.get_dummy_value()


def _lower_wait_for_flag(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    # LLVM numbers the label, so that a kernel may wait more than once.
    wait = (
        "{ .reg .u32 flag; .reg .pred down;"
        " wait_${:uid}: ld.acquire.gpu.global.u32 flag, [$0]; setp.eq.u32 down, flag, 0; @down bra wait_${:uid};"
        " st.relaxed.gpu.global.u32 [$0], 0; }"
    )
    assemble(builder, wait, "l,", _flag(builder, *args))
    return context.get_dummy_value()


def _type_accumulate(_context: Context) -> Typer:
    def typer(array: Type, index: Type, value: Type) -> Type | None:
        known = isinstance(array, types.Array) and array.ndim == 1 and array.dtype == value
        return types.void if known and isinstance(index, types.Integer) else None

    return typer


def _lower_accumulate(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    bits = signature.args[2].bitwidth
    pointer = pointer_to(context, builder, *signature.args[:2], *args[:2])
    constraints = f"l,{'f' if bits == 32 else 'd'},"
    assemble(builder, f"red.relaxed.gpu.global.add.f{bits} [$0], $1;", constraints, pointer, args[2])
    return context.get_dummy_value()


register(raise_flag, _type, _lower_raise_flag, types.Integer)
register(wait_for_flag, _type, _lower_wait_for_flag, types.Integer)
register(accumulate, _type_accumulate, _lower_accumulate, types.Array, types.Integer, types.Float)
