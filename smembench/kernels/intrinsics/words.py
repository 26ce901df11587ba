"""Elements of 16 bits from global memory straight into registers of tensor cores, two to a register.

Each load is one instruction under a predicate: what it does not load is zero, so an edge takes no branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smembench.kernels.intrinsics.declaration import GLOBAL, INTEGER, VALUE, Ptx, Type, types, written
from smembench.kernels.types import Array, Index, Scalar

# The predicate comes first: a cleared register may be the one that ``within`` came in.
_CLEARED = "{{ .reg .pred here; setp.ne.u32 here, ${1}, 0; {0} @here ld.global{2}.u32 {{{3}}}, [${4}]; }}"


def _text(count: int, hint: str) -> str:
    """The load of ``count`` registers, which are zero where it does not happen."""
    names = [f"${i}" for i in range(count)]
    cleared = " ".join(f"mov.u32 {name}, 0;" for name in names)
    return _CLEARED.format(cleared, count + 1, f"{hint}.v{count}", ", ".join(names), count)


def _words(registers: Type, place: Type, array: Type, index: Type, within: Type) -> bool:
    return bool(registers.dtype == types.uint32 and array.dtype.bitwidth == 16)


def _two_words(first: Type, second: Type) -> bool:
    return bool(first == second == types.uint32)


def _loaded(registers: Array, place: Index, array: Array, index: Index, within: Index, count: int) -> None:
    halves: Any = np.zeros(2 * count, np.uint16)
    if within:
        if index % (2 * count):
            raise ValueError(f"index {index}: an access of {4 * count} bytes begins at a multiple of {2 * count}")
        halves[:] = np.asarray(array[index : index + 2 * count]).view(np.uint16)
    for i in range(count):
        word: Any = np.uint32(int(halves[2 * i]) | int(halves[2 * i + 1]) << 16)
        registers[place + i] = word


@Ptx(_text(4, ".nc"), written(4), GLOBAL, INTEGER, fits=_words)
def load_words(registers: Array, place: Index, array: Array, index: Index, within: Index) -> None:
    """Eight elements from ``index`` on, a multiple of 8, in four registers from ``place`` on; zeros unless ``within``.

    Raises:
        ValueError: in the simulator, for another index.
    """
    _loaded(registers, place, array, index, within, 4)


@Ptx(_text(4, ".nc.L1::no_allocate.L2::128B"), written(4), GLOBAL, INTEGER, fits=_words)
def load_words_once(registers: Array, place: Index, array: Array, index: Index, within: Index) -> None:
    """load_words of what the block reads once: it takes no line of the L1.

    Raises:
        ValueError: as load_words.
    """
    _loaded(registers, place, array, index, within, 4)


@Ptx(_text(2, ".nc"), written(2), GLOBAL, INTEGER, fits=_words)
def load_two_words(registers: Array, place: Index, array: Array, index: Index, within: Index) -> None:
    """Four elements, from a multiple of 4 on, in two registers, as load_words.

    Raises:
        ValueError: as load_words.
    """
    _loaded(registers, place, array, index, within, 2)


@Ptx(_text(2, ".nc.L1::no_allocate.L2::128B"), written(2), GLOBAL, INTEGER, fits=_words)
def load_two_words_once(registers: Array, place: Index, array: Array, index: Index, within: Index) -> None:
    """load_two_words of what the block reads once.

    Raises:
        ValueError: as load_words.
    """
    _loaded(registers, place, array, index, within, 2)


@Ptx("prmt.b32 $0, $1, $2, 0x5410;", VALUE, VALUE, volatile=False, fits=_two_words, result=types.uint32)
def lower_halves(first: Scalar, second: Scalar) -> Any:
    """The lower halves of two registers in one, the first's below."""
    return np.uint32(int(first) & 0xFFFF | (int(second) & 0xFFFF) << 16)


@Ptx("prmt.b32 $0, $1, $2, 0x7632;", VALUE, VALUE, volatile=False, fits=_two_words, result=types.uint32)
def upper_halves(first: Scalar, second: Scalar) -> Any:
    """The upper halves of two registers in one, the first's below."""
    return np.uint32(int(first) >> 16 | int(second) >> 16 << 16)
