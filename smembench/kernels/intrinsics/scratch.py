"""Scratch memory: arrays in global memory that belong to a module, through which its blocks pass on what they found.

As ``__device__ float scratch[elements];`` in CUDA C: zero when the module is loaded, and what a launch leaves there the
next one finds. Launches that overlap share it, so a kernel that has some runs on one stream at a time. A count in it
lets blocks wait for each other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from smembench.kernels.intrinsics.lowering import Context, Signature, Type, Typer, Values, assemble, register, types
from smembench.kernels.intrinsics.traced import load_waiting, of_module, traced
from smembench.kernels.intrinsics.vector import BYTES, pointer_to
from smembench.kernels.numba_cuda import DeviceFunction, number
from smembench.kernels.types import Array, Index

_GLOBAL_SPACE = 1

_MEET = (
    "{ .reg .u32 found, others; .reg .pred less, last; sub.u32 others, $1, 1; red.release.gpu.global.add.u32 [$0], 1;"
    " all_${:uid}: ld.acquire.gpu.global.u32 found, [$0]; setp.lt.u32 less, found, $1; @less bra all_${:uid};"
    " atom.relaxed.gpu.global.inc.u32 found, [$0 + 4], others; setp.eq.u32 last, found, others;"
    " @last st.relaxed.gpu.global.u32 [$0], 0; }"
)
"""Blocks count themselves, and again when they go on; the last of these sets the first count back."""


@cache
def scratch(name: str, dtype: str, elements: int) -> DeviceFunction:
    """``()``: the array of this name, with ``elements`` elements, aligned for vectors.

    In the simulator: an array of NumPy that is made at the first call, for all launches of a process.
    """
    kind, itemsize = types.Array(number(dtype), 1, "C"), np.dtype(dtype).itemsize

    @cache
    def simulated() -> Any:
        return np.zeros(elements, dtype)

    def array() -> Array:
        found: Array = of_module(name, elements, dtype) if traced() else simulated()
        return found

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        from numba.cuda.np.arrayobj import populate_array

        space = ir.ArrayType(context.get_data_type(kind.dtype), elements)
        variable = builder.module.globals.get(f"smembench_{name}")
        if variable is None:
            variable = ir.GlobalVariable(builder.module, space, f"smembench_{name}", addrspace=_GLOBAL_SPACE)
            variable.initializer, variable.align, variable.linkage = ir.Constant(space, None), BYTES, "internal"
        made = context.make_array(kind)(context, builder)
        data = builder.bitcast(builder.addrspacecast(variable, space.as_pointer()), made.data.type)
        shape, strides = (context.get_constant(types.intp, value) for value in (elements, itemsize))
        populate_array(made, data=data, shape=[shape], strides=[strides], itemsize=itemsize, meminfo=None)
        return made._getvalue()

    def typer() -> Type:
        return kind

    register(array, lambda _context: typer, lower)
    return array


def wait_for_count(counts: Array, index: Index, wanted: Index) -> int:
    """Wait until a count of blocks is ``wanted``; returns for how many of these blocks this one goes on: 1, for itself.

    Whatever blocks wrote before they counted is visible afterwards. All of them have to run at once, as those of a
    persistent grid do. In the simulator blocks run in order, so that only the last one goes on, for all of them.
    """
    found = load_waiting(counts, index)
    if traced():
        return 1
    return wanted if found == wanted else 0


def meet(counts: Array, blocks: Index) -> None:
    """Wait until all ``blocks`` of a persistent grid have come here; for one thread of each.

    What threads wrote before a barrier ahead of it is visible after a barrier behind it. Both ``counts`` are zero again
    afterwards. In the simulator for a single block; in a trace none waits.
    """


def _lower_wait(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    place = builder.ptrtoint(pointer_to(context, builder, *signature.args[:2], *args[:2]), ir.IntType(64))
    wait = (
        "{ .reg .u32 found; .reg .pred less;"
        " wait_${:uid}: ld.acquire.gpu.global.u32 found, [$0]; setp.lt.u32 less, found, $1; @less bra wait_${:uid}; }"
    )
    assemble(builder, wait, "l,r,", place, args[2])
    return context.get_constant(types.uint32, 1)


def _type_wait(_context: Context) -> Typer:
    def typer(counts: Type, index: Type, wanted: Type) -> Type | None:
        known = isinstance(counts, types.Array) and counts.dtype == wanted == types.uint32
        return types.uint32 if known and isinstance(index, types.Integer) else None

    return typer


def _lower_meet(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    place = builder.ptrtoint(array.data, ir.IntType(64))
    assemble(builder, _MEET, "l,r,", place, args[1])
    return context.get_dummy_value()


def _type_meet(_context: Context) -> Typer:
    return lambda counts, blocks: types.void if blocks == types.uint32 else None


register(meet, _type_meet, _lower_meet, types.Array, types.Integer)
register(wait_for_count, _type_wait, _lower_wait, types.Array, types.Integer, types.Integer)
