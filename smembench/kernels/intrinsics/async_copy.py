"""Asynchronous copies from global to shared memory, which bypass registers while the thread goes on.

``cp.async`` (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy") only starts a copy. A thread
commits its copies in groups, and later waits until all but its newest groups are complete. It then sees its own copies;
those of other threads of its block it sees after a barrier that follows their wait. Copies of 128 bits bypass the L1
(``.cg``). All need compute capability 8.0.

In the simulator a copy is a load and a store at once, and groups and waits do nothing.
"""

from __future__ import annotations

from functools import cache

from smembench.kernels.intrinsics.declaration import (
    BYTES,
    BYTES_IF,
    GLOBAL,
    LITERAL,
    SHARED,
    Operand,
    Ptx,
    Type,
    register,
    types,
)
from smembench.kernels.intrinsics.vector import clear_vector, copy_vector, same_vectors
from smembench.kernels.numba_cuda import DeviceFunction, uint32, uint64
from smembench.kernels.types import Array, Index


def _elements_fit(tile: Type, place: Type, array: Type, index: Type) -> bool:
    return same_vectors(tile, place, array, index) and array.dtype.bitwidth >= 32


_VECTOR = f"cp.async.cg.shared.global [$0], [$1], {BYTES};"
_ELEMENT = "cp.async.ca.shared.global [$0], [$1], %bytes;"

_IN_ROW = Operand("in_row", (types.Array, types.uint32, types.uint32))
"""The address in global memory of an element rows below a place and some along, by the stride."""


@Ptx(_VECTOR, SHARED, GLOBAL, fits=same_vectors)
def copy_vector_async(tile: Array, place: Index, array: Array, index: Index) -> None:
    """Start to copy the ``vector_width`` elements of a global array from ``index`` on into a tile from ``place`` on.

    Raises:
        ValueError: in the simulator, for a place or an index that is not a multiple of ``vector_width``.
    """
    copy_vector(tile, place, array, index)


@Ptx(
    f"cp.async.cg.shared.global [$1], [$2], {BYTES}, $0;",
    BYTES_IF,
    SHARED,
    GLOBAL,
    fits=lambda inside, *copy: same_vectors(*copy),
)
def copy_vector_async_if(inside: bool, tile: Array, place: Index, array: Array, index: Index) -> None:
    """Start to copy as ``copy_vector_async`` does, or, outside, to store zeros without accessing the global array.

    Raises:
        ValueError: as copy_vector_async.
    """
    if inside:
        copy_vector(tile, place, array, index)
    else:
        clear_vector(tile, place)


@Ptx(_ELEMENT, SHARED, GLOBAL, fits=_elements_fit)
def copy_element_async(tile: Array, place: Index, array: Array, index: Index) -> None:
    """Start to copy one element of a global array into a tile: 4 or 8 bytes, through the L1 (``.ca``)."""
    tile[place] = array[index]


@Ptx("cp.async.commit_group;")
def commit_copies() -> None:
    """``cp.async.commit_group``: commit the copies started since the last commit as a group, which may be empty."""


@Ptx("cp.async.wait_group %literal;", LITERAL)
def wait_for_copies(newest: int) -> None:
    """``cp.async.wait_group``: wait until all groups of this thread but the ``newest``, a constant, are complete."""


@cache
def copies_async(copies: tuple[tuple[int, int, int], ...], *, vectors: bool) -> DeviceFunction:
    """``(tile, place, array, index, stride)``: start copies of a tile from a matrix whose rows lie ``stride`` apart.

    Each copy has rows below, elements along and a place, all constants, relative to ``index`` and ``place``. It copies
    a vector, or an element. Copies from one row share an address up to a constant. One intrinsic: inlining a call per
    copy takes Numba most of its compile time.
    """
    copy, text = (copy_vector_async, _VECTOR) if vectors else (copy_element_async, _ELEMENT)

    def start(tile: Array, place: Index, array: Array, index: Index, stride: Index) -> None:
        for below, along, offset in copies:
            at = uint64(index + uint32(below) * stride)
            copy(tile, place + uint64(offset), array, at + along)

    instructions = (
        Ptx(text, SHARED._replace(parameters=(place,)), _IN_ROW._replace(parameters=(below, along)))
        for below, along, place in copies
    )
    return register(start, tuple(instructions), types.Array, types.uint64, *_IN_ROW.arguments)
