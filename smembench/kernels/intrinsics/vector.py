"""128-bit accesses of Numba arrays in kernels: 16 bytes per thread in one instruction instead of one element.

Each function is plain Python in the simulator and in a trace, and one instruction in a compiled kernel (a copy: two):
``ld.global.v4`` for a global array, ``st.shared.v4`` for a tile, nothing for a local array, which lives in registers.
An index counts elements and must be a multiple of ``vector_width``: hardware faults on addresses that are not multiples
of 16 bytes. Arrays must begin at such an address. Global ones do; shared and local ones take ``alignment=ALIGNMENT``.

The streaming functions add the cache operator ``.cs`` (PTX ISA, "Cache Operators": likely accessed once, evicted
first), for global arrays only.
"""

from __future__ import annotations

from llvmlite import ir

from smembench.kernels.intrinsics.lowering import Context, Signature, Type, Typer, Values, register, types
from smembench.kernels.numba_cuda import SIMULATED
from smembench.kernels.types import Array, Index, Vector
from smembench.model.problem import ITEMSIZE

BYTES = 16
"""Bytes per access, the most per thread and instruction (PTX ISA, ``ld``)."""

PAIR = 2
"""Elements of the narrower access, for fragments that are not made of whole vectors."""

ALIGNMENT = None if SIMULATED else BYTES
"""For ``cuda.shared.array`` and ``cuda.local.array``: the simulator knows no alignment."""

_WORD = ir.IntType(32)
_VECTOR = ir.VectorType(_WORD, BYTES // 4)


def vector_width(dtype: str) -> int:
    """Elements of a dtype per 128-bit access."""
    return BYTES // ITEMSIZE[dtype]


def load_vector(array: Array, index: Index) -> Vector:
    """``vector_width`` elements of a one-dimensional array from ``index`` on, in one access.

    Raises:
        ValueError: in the simulator and in a trace, for an index that is not a multiple of ``vector_width``.
    """
    return tuple(array[_span(array, index)])


def load_pair(array: Array, index: Index) -> Vector:
    """Two elements of a one-dimensional array from ``index`` on, in one access.

    Raises:
        ValueError: in the simulator and in a trace, for an odd index.
    """
    return tuple(array[_span(array, index, PAIR)])


def store_vector(array: Array, index: Index, values: Vector) -> None:
    """Store a tuple of ``vector_width`` elements at ``index`` and after it, in one access.

    Raises:
        ValueError: as load_vector.
    """
    array[_span(array, index)] = values


def copy_vector(target: Array, place: Index, source: Array, index: Index) -> None:
    """Copy ``vector_width`` elements from ``index`` to ``place``, with one load and one store.

    Raises:
        ValueError: as load_vector, for a place as well.
    """
    store_vector(target, place, load_vector(source, index))


def clear_vector(array: Array, index: Index) -> None:
    """Store zeros in ``vector_width`` elements from ``index`` on, in one access.

    Raises:
        ValueError: as load_vector.
    """
    array[_span(array, index)] = (0,) * (BYTES // array.itemsize)


def load_vector_streaming(array: Array, index: Index) -> Vector:
    """load_vector with lines that the caches may evict first: ``ld.global.cs``.

    Raises:
        ValueError: as load_vector.
    """
    return load_vector(array, index)


def store_vector_streaming(array: Array, index: Index, values: Vector) -> None:
    """store_vector with lines that the caches may evict first: ``st.global.cs``.

    Raises:
        ValueError: as load_vector.
    """
    store_vector(array, index, values)


def _span(array: Array, index: Index, elements: int = 0) -> slice:
    """The elements of one access, as a slice."""
    count = elements or BYTES // array.itemsize
    if index % count:
        size = count * array.itemsize
        raise ValueError(f"index {index} of a {size}-byte access is not a multiple of its {count} elements")
    return slice(index, index + count)


def vector_of(array: Type) -> Type | None:
    """Numba's type of the elements of one access; None, which matches nothing, for arrays without 128-bit accesses."""
    if not isinstance(array, types.Array) or array.ndim != 1 or array.layout != "C":
        return None
    return types.UniTuple(array.dtype, 8 * BYTES // array.dtype.bitwidth)


def _type_load(_context: Context) -> Typer:
    def typer(array: Type, index: Type) -> Type | None:
        return vector_of(array) if isinstance(index, types.Integer) else None

    return typer


def _type_load_pair(_context: Context) -> Typer:
    def typer(array: Type, index: Type) -> Type | None:
        return types.UniTuple(array.dtype, PAIR) if vector_of(array) and isinstance(index, types.Integer) else None

    return typer


def _type_store(_context: Context) -> Typer:
    def typer(array: Type, index: Type, values: Type) -> Type | None:
        return types.void if isinstance(index, types.Integer) and values == vector_of(array) else None

    return typer


def type_copy(_context: Context) -> Typer:
    """The typing of a copy: void where target and source have the same vectors."""

    def typer(target: Type, place: Type, source: Type, index: Type) -> Type | None:
        integers = isinstance(place, types.Integer) and isinstance(index, types.Integer)
        return types.void if integers and vector_of(target) == vector_of(source) is not None else None

    return typer


def pointer_to(
    context: Context, builder: ir.IRBuilder, array_type: Type, index_type: Type, array: ir.Value, index: ir.Value
) -> ir.Value:
    """The address of an element, as a pointer to four words."""
    data = context.make_array(array_type)(context, builder, array).data
    widen = builder.sext if index_type.signed else builder.zext
    wide = index if index_type.bitwidth == 64 else widen(index, ir.IntType(64))
    return builder.bitcast(builder.gep(data, [wide]), _VECTOR.as_pointer())


def _elements_type(context: Context, tuple_type: Type) -> ir.VectorType:
    return ir.VectorType(context.get_value_type(tuple_type.dtype), tuple_type.count)


def _unpacked(context: Context, builder: ir.IRBuilder, tuple_type: Type, vector: ir.Value) -> ir.Value:
    """A tuple of the elements that lie in four words."""
    elements = builder.bitcast(vector, _elements_type(context, tuple_type))
    values = [builder.extract_element(elements, _WORD(lane)) for lane in range(tuple_type.count)]
    return context.make_tuple(builder, tuple_type, values)


def _packed(context: Context, builder: ir.IRBuilder, tuple_type: Type, values: ir.Value) -> ir.Value:
    """Four words that hold the elements of a tuple."""
    elements = ir.Constant(_elements_type(context, tuple_type), ir.Undefined)
    for lane in range(tuple_type.count):
        elements = builder.insert_element(elements, builder.extract_value(values, lane), _WORD(lane))
    return builder.bitcast(elements, _VECTOR)


def _lower_load(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    loaded = builder.load(pointer_to(context, builder, *signature.args, *args))
    loaded.align = BYTES
    return _unpacked(context, builder, signature.return_type, loaded)


def _lower_load_pair(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    elements = _elements_type(context, signature.return_type)
    pointer = builder.bitcast(pointer_to(context, builder, *signature.args, *args), elements.as_pointer())
    loaded = builder.load(pointer)
    loaded.align = PAIR * signature.return_type.dtype.bitwidth // 8
    return _unpacked(context, builder, signature.return_type, loaded)


def _lower_store(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    vector = _packed(context, builder, signature.args[2], args[2])
    stored = builder.store(vector, pointer_to(context, builder, *signature.args[:2], *args[:2]))
    stored.align = BYTES
    return context.get_dummy_value()


def _lower_clear(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    stored = builder.store(ir.Constant(_VECTOR, None), pointer_to(context, builder, *signature.args, *args))
    stored.align = BYTES
    return context.get_dummy_value()


def _type_clear(_context: Context) -> Typer:
    return lambda array, index: types.void if vector_of(array) and isinstance(index, types.Integer) else None


def emit_copy(builder: ir.IRBuilder, target: ir.Value, source: ir.Value) -> None:
    """``copy_vector`` from one pointer to another, for functions lowered as one intrinsic."""
    loaded = builder.load(source)
    stored = builder.store(loaded, target)
    loaded.align = stored.align = BYTES


def _lower_copy(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    source = pointer_to(context, builder, *signature.args[2:], *args[2:])
    emit_copy(builder, pointer_to(context, builder, *signature.args[:2], *args[:2]), source)
    return context.get_dummy_value()


def _lower_load_streaming(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    pointer = pointer_to(context, builder, *signature.args, *args)
    words = ir.LiteralStructType([_WORD] * _VECTOR.count)
    assembly = ir.InlineAsm(
        ir.FunctionType(words, [pointer.type]), "ld.global.cs.v4.b32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l"
    )
    loaded = builder.call(assembly, [pointer])
    vector = ir.Constant(_VECTOR, ir.Undefined)
    for word in range(_VECTOR.count):
        vector = builder.insert_element(vector, builder.extract_value(loaded, word), _WORD(word))
    return _unpacked(context, builder, signature.return_type, vector)


def _lower_store_streaming(context: Context, builder: ir.IRBuilder, signature: Signature, args: Values) -> ir.Value:
    vector = _packed(context, builder, signature.args[2], args[2])
    pointer = pointer_to(context, builder, *signature.args[:2], *args[:2])
    words = [builder.extract_element(vector, _WORD(word)) for word in range(_VECTOR.count)]
    assembly = ir.InlineAsm(
        ir.FunctionType(ir.VoidType(), [pointer.type, *(word.type for word in words)]),
        "st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};",
        "l,r,r,r,r,~{memory}",
        side_effect=True,
    )
    builder.call(assembly, [pointer, *words])
    return context.get_dummy_value()


register(load_vector, _type_load, _lower_load, types.Array, types.Integer)
register(load_pair, _type_load_pair, _lower_load_pair, types.Array, types.Integer)
register(load_vector_streaming, _type_load, _lower_load_streaming, types.Array, types.Integer)
register(store_vector, _type_store, _lower_store, types.Array, types.Integer, types.UniTuple)
register(store_vector_streaming, _type_store, _lower_store_streaming, types.Array, types.Integer, types.UniTuple)
register(clear_vector, _type_clear, _lower_clear, types.Array, types.Integer)
register(copy_vector, type_copy, _lower_copy, types.Array, types.Integer, types.Array, types.Integer)
