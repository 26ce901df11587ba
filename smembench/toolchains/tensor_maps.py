"""Launches of Numba kernels with tensor maps, which describe matrices to the Tensor Memory Accelerator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smembench.kernels.program import MAPPED_ROW_BYTES, NumbaKernel, TensorMap
from smembench.toolchains.cubin import entry
from smembench.toolchains.loaded import Loaded

_TYPES = {1: "UINT8", 2: "UINT16", 4: "UINT32"}
"""By the bytes of an element: copies do not depend on what the bits mean."""


class MappedKernel(Loaded[NumbaKernel]):
    """A Numba kernel's machine code, launched with the addresses of its tensor maps after the scalars.

    The maps lie in global memory, each encoded once per address of its array. An array has memory for one copy.
    """

    def __init__(self, code: bytes) -> None:
        from cuda.core import ObjectCode

        super().__init__(ObjectCode.from_cubin(code), entry(code), passed=as_numba_does)
        self._maps: dict[tuple[TensorMap, int], Any] = {}
        self._copies: dict[tuple[int, int], Any] = {}

    def last(self, program: NumbaKernel, arrays: Sequence[Any]) -> Sequence[int]:
        """The maps' addresses; encodes and copies those that are new, before any launch is captured."""
        from smembench.kernels.numba_cuda import cuda

        addresses = []
        for each in program.tensor_maps:
            array = self._copy(each, arrays[each.array]) if each.copied else arrays[each.array]
            key = (each, int(array.device_ctypes_pointer.value))
            if key not in self._maps:
                self._maps[key] = cuda.to_device(encoded(each, key[1], array.dtype.itemsize))
            addresses.append(int(self._maps[key].device_ctypes_pointer.value))
        return addresses

    def _copy(self, described: TensorMap, array: Any) -> Any:
        """Memory for a copy of an array with so many rows of this stride."""
        from smembench.kernels.numba_cuda import cuda

        key = described.array, described.rows * described.stride
        if key not in self._copies:
            self._copies[key] = cuda.device_array(key[1], array.dtype)
        return self._copies[key]


def as_numba_does(array: Any) -> tuple[int, ...]:
    """A one-dimensional array as Numba passes it: two owners, elements, bytes of one, address, shape, stride."""
    size, itemsize = int(array.size), int(array.dtype.itemsize)
    return (0, 0, size, itemsize, int(array.device_ctypes_pointer.value), size, itemsize)


def encoded(described: TensorMap, address: int, itemsize: int) -> Any:
    """The 128 bytes that the hardware reads, as 16 integers.

    Raises:
        RuntimeError: CUDA's, for an address or a stride that is no multiple of 16 bytes.
    """
    import numpy as np
    from cuda.bindings import driver

    from smembench.kernels.numba_cuda import checked

    kind = getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_TYPES[itemsize]}")
    made = checked(
        driver.cuTensorMapEncodeTiled(
            kind,
            2,
            address,
            [driver.cuuint64_t(described.columns), driver.cuuint64_t(described.rows)],
            [driver.cuuint64_t(itemsize * described.stride)],
            [driver.cuuint32_t(MAPPED_ROW_BYTES // itemsize), driver.cuuint32_t(described.tile_rows)],
            [driver.cuuint32_t(1), driver.cuuint32_t(1)],
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
            driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    return np.array([int(word) for word in made.opaque], np.uint64)
