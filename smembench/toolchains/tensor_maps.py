"""Tensor maps, which describe matrices to the Tensor Memory Accelerator, as launches pass them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smembench.kernels.program import TensorMap

_TYPES = {1: "UINT8", 2: "UINT16", 4: "UINT32", 8: "UINT64"}
"""Types by the bytes of an element: copies do not depend on what the bits mean."""


class Maps:
    """The tensor maps of a kernel's launches.

    Copies of arrays have memory here while the kernel lives, one per array and size.
    """

    def __init__(self) -> None:
        self._copies: dict[tuple[int, int], Any] = {}

    def of(self, described: Sequence[TensorMap], arrays: Sequence[Any]) -> list[bytes]:
        """The maps of these arrays, as parameters of a launch."""
        pairs = [(one, self._copy(one, arrays[one.array]) if one.copied else arrays[one.array]) for one in described]
        return [encoded(one, int(array.address), array.dtype.itemsize).tobytes() for one, array in pairs]

    def _copy(self, described: TensorMap, array: Any) -> Any:
        """Memory for a copy of an array with the map's rows and stride."""
        from smembench.kernels.device_memory import device_array

        key = described.array, described.rows * described.stride
        if key not in self._copies:
            self._copies[key] = device_array(key[1], array.dtype)
        return self._copies[key]


def encoded(described: TensorMap, address: int, itemsize: int) -> Any:
    """The 128 bytes that the hardware reads, as 16 integers.

    Raises:
        RuntimeError: CUDA's, for an address or a stride that is no multiple of 16 bytes.
    """
    sides, strides = [described.columns, described.rows], [itemsize * described.stride]
    box = [described.row_bytes // itemsize, described.tile_rows]
    if (apart := described.apart) > 1:
        sides[1:] = [apart, described.rows // apart]
        strides.append(apart * strides[0])
        box.insert(1, 1)
    return encoded_map(address, itemsize, sides, strides, box, described.row_bytes)


def encoded_map(
    address: int, itemsize: int, sides: Sequence[int], strides: Sequence[int], box: Sequence[int], swizzle: int
) -> Any:
    """The 128 bytes of a tensor map, as 16 integers.

    Args:
        address: of the array.
        itemsize: bytes of an element.
        sides, box: elements along each dimension, the innermost first.
        strides: bytes along each dimension but the innermost.
        swizzle: bytes over which chunks of 16 are swizzled; 0 for none.

    Raises:
        RuntimeError: CUDA's, for an address or a stride that is no multiple of 16 bytes.
    """
    import numpy as np
    from cuda.bindings import driver

    from smembench.kernels.driver import checked

    made = checked(
        driver.cuTensorMapEncodeTiled(
            getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[itemsize]}"),
            len(sides),
            address,
            [driver.cuuint64_t(side) for side in sides],
            [driver.cuuint64_t(stride) for stride in strides],
            [driver.cuuint32_t(side) for side in box],
            [driver.cuuint32_t(1)] * len(sides),
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{f'{swizzle}B' if swizzle else 'NONE'}"),
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return np.array([int(word) for word in made.opaque], np.uint64)
