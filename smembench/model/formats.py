"""The 16-bit floating-point formats, and how NumPy's arrays hold them.

NumPy has float16 and no bfloat16; Numba, CuPy and the interface through which arrays on the device are exchanged do not
know ml_dtypes' type either. So a bfloat16 array is an array of its bits, uint16, and is converted where it is made and
where it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HALVES = ("bfloat16", "float16")
"""The element types of 16 bits, whose products are added up in float32."""

WIDE = ("float32", "float64")
"""The element types whose products are added up in the type itself."""

UNIT_ROUNDOFF = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
"""Largest relative error of rounding to nearest, half the distance from 1 to the next number."""

SMALLEST = {"bfloat16": 2.0**-133, "float16": 2.0**-24}
"""The smallest positive number, a subnormal."""


def carried(dtype: str) -> str:
    """NumPy's name for the elements of arrays of this type."""
    return "uint16" if dtype == "bfloat16" else dtype


def accumulated(dtype: str) -> str:
    """The type in which products of this type are added up."""
    return "float32" if dtype in HALVES else dtype


def _format(dtype: str) -> np.dtype[Any]:
    import ml_dtypes
    import numpy as np

    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def rounded(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """An array of this type, from floats, rounded to nearest, ties to even."""
    return values.astype(_format(dtype), copy=False).view(carried(dtype))


def widened(array: NDArray[Any], dtype: str, to: str) -> NDArray[Any]:
    """The numbers of an array of this type as ``to``, float32 or float64."""
    return array.view(_format(dtype)).astype(to, copy=False)
