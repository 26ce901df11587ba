"""128-bit accesses of Numba arrays in kernels: 16 bytes per thread in one instruction instead of one element.

Each function is plain Python in the simulator, and one instruction in a compiled kernel (a copy: two):
``ld.global.v4`` for a global array, ``st.shared.v4`` for a tile, nothing for a local array, which lives in registers.
An index counts elements and must be a multiple of ``vector_width``: hardware faults on addresses that are not multiples
of 16 bytes. Arrays must begin at such an address. Global ones do; shared and local ones take ``alignment=ALIGNMENT``.

The streaming functions add the cache operator ``.cs`` (PTX ISA, "Cache Operators": likely accessed once, evicted
first), for global arrays only.
"""

from __future__ import annotations

from llvmlite import ir

from smembench.kernels.intrinsics.declaration import BYTES, GLOBAL, PLACE, VECTOR, Ptx, Type, register, types
from smembench.kernels.intrinsics.lowering import WORD, WORDS, Code, Value
from smembench.kernels.numba_cuda import SIMULATED, DeviceFunction, device
from smembench.kernels.types import Array, Index, Vector
from smembench.model.problem import ITEMSIZE

PAIR = 2
"""Elements of the narrower access, for fragments that are not made of whole vectors."""

ALIGNMENT = None if SIMULATED else BYTES
"""For ``cuda.shared.array`` and ``cuda.local.array``: the simulator knows no alignment."""


def vector_of(array: Type, *index: Type) -> Type | None:
    """Numba's type of the elements of an access at any index; None, which matches nothing, if they are not 128 bits."""
    if array.ndim != 1 or array.layout != "C":
        return None
    return types.UniTuple(array.dtype, 8 * BYTES // array.dtype.bitwidth)


def same_vectors(target: Type, place: Type, source: Type, index: Type) -> bool:
    """True if two arrays have the same vectors."""
    return vector_of(target) == vector_of(source) is not None


def _is_vector(array: Type, index: Type, values: Type) -> bool:
    return bool(values == vector_of(array))


def vector_width(dtype: str) -> int:
    """Elements of a dtype per 128-bit access."""
    return BYTES // ITEMSIZE[dtype]


def load_vector(array: Array, index: Index) -> Vector:
    """``vector_width`` elements of a one-dimensional array from ``index`` on, in one access.

    Raises:
        ValueError: in the simulator, for an index that is not a multiple of ``vector_width``.
    """
    return tuple(array[_span(array, index)])


def load_pair(array: Array, index: Index) -> Vector:
    """Two elements of a one-dimensional array from ``index`` on, in one access.

    Raises:
        ValueError: in the simulator, for an odd index.
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


@device
def copy_element(target: Array, place: Index, source: Array, index: Index) -> None:
    """Copy one element from ``index`` to ``place``."""
    target[place] = source[index]


def copying(width: int) -> DeviceFunction:
    """The copy of ``width`` elements in one access: ``copy_vector``, or ``copy_element``."""
    return copy_element if width == 1 else copy_vector


def clear_vector(array: Array, index: Index) -> None:
    """Store zeros in ``vector_width`` elements from ``index`` on, in one access.

    Raises:
        ValueError: as load_vector.
    """
    array[_span(array, index)] = (0,) * (BYTES // array.itemsize)


@Ptx("ld.global.cs.v4.b32 {$0, $1, $2, $3}, [$4];", GLOBAL, result=vector_of, volatile=False)
def load_vector_streaming(array: Array, index: Index) -> Vector:
    """load_vector with lines that the caches may evict first: ``ld.global.cs``.

    Raises:
        ValueError: as load_vector.
    """
    return load_vector(array, index)


@Ptx("st.global.cs.v4.b32 [$0], {$1, $2, $3, $4};", GLOBAL, VECTOR, fits=_is_vector)
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


# PTX text would have to name the space of the array. LLVM finds it, and keeps local arrays in registers.
def _load(code: Code, array: Value, index: Value) -> ir.Value:
    size = code.result.count * array.kind.dtype.bitwidth // 8
    words = ir.VectorType(WORD, size // 4)
    return code.tuple_of(code.result, code.load(code.pointer(array, index), words, size))


def _store(code: Code, array: Value, index: Value, values: Value) -> None:
    code.store(code.vector_of(values), code.pointer(array, index))


def _clear(code: Code, array: Value, index: Value) -> None:
    code.store(ir.Constant(WORDS, None), code.pointer(array, index))


def emit_copy(code: Code, target: Value, place: Value | int, source: Value, index: Value) -> None:
    """``copy_vector``, for functions lowered as one intrinsic."""
    begin, end = code.pointer(source, index), code.pointer(target, place)
    code.store(code.load(begin), end)


register(load_vector, _load, *PLACE, result=vector_of)
register(load_pair, _load, *PLACE, result=lambda array, index: vector_of(array) and types.UniTuple(array.dtype, PAIR))
register(store_vector, _store, *PLACE, types.UniTuple, fits=_is_vector)
register(clear_vector, _clear, *PLACE, fits=lambda array, index: vector_of(array) is not None)
register(copy_vector, emit_copy, *PLACE, *PLACE, fits=same_vectors)
