"""Asynchronous copies from global to shared memory, which bypass registers while the thread goes on.

``cp.async`` (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy") only starts a copy. A thread
commits its copies in groups, and later waits until all but its newest groups are complete. It then sees its own copies;
those of other threads of its block it sees after a barrier that follows their wait. Copies of 128 bits bypass the L1
(``.cg``). All need compute capability 8.0.

In the simulator and in a trace a copy is a load and a store at once, and groups and waits do nothing.
"""

from __future__ import annotations

from functools import cache

from llvmlite import ir

from smembench.kernels.intrinsics.lowering import Context, Signature, Type, Typer, Values, assemble, register, types
from smembench.kernels.intrinsics.vector import BYTES, clear_vector, copy_vector, pointer_to, type_copy, vector_of
from smembench.kernels.numba_cuda import DeviceFunction, uint32, uint64
from smembench.kernels.types import Array, Index

_SHARED_SPACE = 3
"""Address space of shared memory in NVVM IR, where a pointer to it has 32 bits."""


def copy_vector_async(tile: Array, place: Index, array: Array, index: Index) -> None:
    """Start to copy the ``vector_width`` elements of a global array from ``index`` on into a tile from ``place`` on.

    Raises:
        ValueError: in the simulator and in a trace, for a place or an index that is not a multiple of ``vector_width``.
    """
    copy_vector(tile, place, array, index)


def copy_vector_async_if(inside: bool, tile: Array, place: Index, array: Array, index: Index) -> None:
    """Start to copy as ``copy_vector_async`` does, or, outside, to store zeros without accessing the global array.

    Raises:
        ValueError: as copy_vector_async.
    """
    if inside:
        copy_vector(tile, place, array, index)
    else:
        clear_vector(tile, place)


def copy_element_async(tile: Array, place: Index, array: Array, index: Index) -> None:
    """Start to copy one element of a global array into a tile: 4 or 8 bytes, through the L1 (``.ca``)."""
    tile[place] = array[index]


def commit_copies() -> None:
    """``cp.async.commit_group``: commit the copies started since the last commit as a group, which may be empty."""


def wait_for_copies(newest: int) -> None:
    """``cp.async.wait_group``: wait until all groups of this thread but the ``newest``, a constant, are complete."""


def _type_commit(_context: Context) -> Typer:
    return lambda: types.void


def _type_wait(_context: Context) -> Typer:
    def typer(newest: Type) -> Type | None:
        return types.void if isinstance(newest, types.IntegerLiteral) else None

    return typer


def _type_element(_context: Context) -> Typer:
    def typer(tile: Type, place: Type, array: Type, index: Type) -> Type | None:
        if vector_of(tile) is None or vector_of(array) != vector_of(tile) or array.dtype.bitwidth < 32:
            return None
        return types.void if isinstance(place, types.Integer) and isinstance(index, types.Integer) else None

    return typer


def _emit(builder: ir.IRBuilder, target: ir.Value, source: ir.Value, size: int) -> None:
    """Start to copy ``size`` bytes from one pointer to another."""
    cache = "cg" if size == BYTES else "ca"
    target = builder.addrspacecast(target, target.type.pointee.as_pointer(_SHARED_SPACE))
    assembly = f"cp.async.{cache}.shared.global [$0], [$1], {size};"
    assemble(builder, assembly, "r,l,", builder.ptrtoint(target, ir.IntType(32)), source)


def _lower_vector(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    return _start(context, builder, signature, args, BYTES)


def _type_if(context: Context) -> Typer:
    copies = type_copy(context)

    def typer(inside: Type, tile: Type, place: Type, array: Type, index: Type) -> Type | None:
        return copies(tile, place, array, index) if inside == types.boolean else None

    return typer


def _lower_if(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    word = ir.IntType(32)
    target = pointer_to(context, builder, *signature.args[1:3], *args[1:3])
    target = builder.addrspacecast(target, target.type.pointee.as_pointer(_SHARED_SPACE))
    source = pointer_to(context, builder, *signature.args[3:], *args[3:])
    size = builder.select(args[0], word(BYTES), word(0))
    assembly = f"cp.async.cg.shared.global [$0], [$1], {BYTES}, $2;"
    assemble(builder, assembly, "r,l,r,", builder.ptrtoint(target, word), source, size)
    return context.get_dummy_value()


def _lower_element(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    return _start(context, builder, signature, args, signature.args[0].dtype.bitwidth // 8)


@cache
def copies_async(copies: tuple[tuple[int, int, int], ...], *, vectors: bool) -> DeviceFunction:
    """``(tile, place, array, index, stride)``: start copies of a tile from a matrix whose rows lie ``stride`` apart.

    Each copy has rows below, elements along and a place, all constants, relative to ``index`` and ``place``. It copies
    a vector, or an element. Copies from one row share an address up to a constant. Lowered as one function: inlining a
    call per copy takes Numba most of its compile time.
    """
    copy = copy_vector_async if vectors else copy_element_async

    def start(tile: Array, place: Index, array: Array, index: Index, stride: Index) -> None:
        for below, along, offset in copies:
            at = uint64(index + uint32(below) * stride)
            copy(tile, place + uint64(offset), array, at + along)

    def lower(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
        narrow, wide = ir.IntType(32), ir.IntType(64)
        tile_type, index_type, array_type, *_ = signature.args
        tile, place, array, index, stride = args
        size = BYTES if vectors else tile_type.dtype.bitwidth // 8
        for below, along, offset in copies:
            row = builder.zext(builder.add(index, builder.mul(stride, ir.Constant(narrow, below))), wide)
            at = builder.add(row, ir.Constant(wide, along))
            to = builder.add(place, ir.Constant(wide, offset))
            _emit(
                builder,
                pointer_to(context, builder, tile_type, index_type, tile, to),
                pointer_to(context, builder, array_type, index_type, array, at),
                size,
            )
        return context.get_dummy_value()

    def typer(tile: Type, place: Type, array: Type, index: Type, stride: Type) -> Type | None:
        return types.void if place == types.uint64 and index == stride == types.uint32 else None

    register(start, lambda _context: typer, lower, *_PLACES, types.Integer)
    return start


def _start(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values, size: int) -> ir.Value:
    target = pointer_to(context, builder, *signature.args[:2], *args[:2])
    source = pointer_to(context, builder, *signature.args[2:], *args[2:])
    _emit(builder, target, source, size)
    return context.get_dummy_value()


def _lower_commit(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    assemble(builder, "cp.async.commit_group;")
    return context.get_dummy_value()


def _lower_wait(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    assemble(builder, f"cp.async.wait_group {signature.args[0].literal_value};")
    return context.get_dummy_value()


_PLACES = (types.Array, types.Integer, types.Array, types.Integer)

register(copy_vector_async, type_copy, _lower_vector, *_PLACES)
register(copy_vector_async_if, _type_if, _lower_if, types.Boolean, *_PLACES)
register(copy_element_async, _type_element, _lower_element, *_PLACES)
register(commit_copies, _type_commit, _lower_commit)
register(wait_for_copies, _type_wait, _lower_wait, types.IntegerLiteral)
