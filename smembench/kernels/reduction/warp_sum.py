"""The sum over a warp by shuffles: lanes read each other's registers, without shared memory and barriers."""

from __future__ import annotations

from functools import cache

from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number
from smembench.kernels.types import Scalar

ALL_LANES = 0xFFFFFFFF


@cache
def warp_sum(dtype: str) -> DeviceFunction:
    """``(total)``: the sum of the totals of a warp's 32 lanes, in lane 0; what other lanes get has no meaning."""
    element = number(dtype)

    def add_lanes(total: Scalar) -> Scalar:
        value: Scalar = element(total)  # Numba adds int32 in 64 bits
        for lanes in (16, 8, 4, 2, 1):
            value = element(value + cuda.shfl_down_sync(ALL_LANES, value, lanes))
        return value

    return device(add_lanes)
