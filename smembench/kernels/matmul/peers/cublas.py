"""cublas: cuBLAS itself, ``cublasSgemm``, ``cublasDgemm`` and, of 16-bit types and tf32, ``cublasGemmEx``.

Its default math mode leaves TF32 off for float32. Products of narrow numbers are added up in float32, all of k, and
rounded once. float8 it does not take, only cuBLASLt, which PyTorch calls.
It is called through ctypes, since CuPy's bindings refuse every call of cuBLAS while a stream is captured. The process
keeps one handle and workspace, so nothing is allocated during a capture.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from cuda.bindings import driver

from smembench.kernels.device_memory import device_array
from smembench.kernels.driver import checked
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import HALVES, TF32, WIDE
from smembench.model.install import extra

_AS_IT_IS, _TRANSPOSED = 0, 1
"""CUBLAS_OP_N and CUBLAS_OP_T."""
_WORKSPACE_BYTES = 2**25
"""What cuBLAS's guide recommends for compute capability 9.0 ("cublasSetWorkspace")."""
_NO_SHORT_SUMS = 16
"""CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION, beside the default mode."""
_TYPES = {"bfloat16": 14, "float16": 2, TF32: 0}
"""CUDA_R_16BF, CUDA_R_16F and CUDA_R_32F."""
_IN_FLOAT32, _BY_TF32, _ANY_ALGORITHM = 68, 77, -1
"""CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32 and CUBLAS_GEMM_DEFAULT."""
_GEMM = {"float32": ("cublasSgemm_v2", ctypes.c_float), "float64": ("cublasDgemm_v2", ctypes.c_double)}


class _CuBlas:
    """A handle of the library in the context that is current."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(_path())
        self._handle = ctypes.c_void_p()
        self.call("cublasCreate_v2", ctypes.byref(self._handle))
        self.call("cublasSetMathMode", self._handle, _NO_SHORT_SUMS)
        self._workspace = device_array(_WORKSPACE_BYTES, np.uint8)

    def on(self, stream: int) -> ctypes.c_void_p:
        """The handle, for calls on a stream; choosing one makes cuBLAS forget its workspace."""
        self.call("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))
        self.call("cublasSetWorkspace_v2", self._handle, _pointer(self._workspace), ctypes.c_size_t(_WORKSPACE_BYTES))
        return self._handle

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            RuntimeError: with cuBLAS's status, when that is not 0.
        """
        if status := getattr(self._library, name)(*arguments):
            raise RuntimeError(f"{name}: cuBLAS status {status}")


@cache
def _opened(device: int) -> _CuBlas:
    """The handle of a GPU, which must be the current one."""
    return _CuBlas()


@cache
def _path() -> str:
    """Path of the library, which is loaded by then.

    Raises:
        RuntimeError: when it is nowhere.
    """
    from cuda.pathfinder import load_nvidia_dynamic_lib

    path: str | None = load_nvidia_dynamic_lib("cublas").abs_path
    if path is None:
        raise RuntimeError("cuBLAS was loaded from an unknown place")
    return path


def _pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.address)


def build(case: Case) -> LibraryCall:
    """Program for ``(stream, c, a, b)``."""
    m, n, k = (ctypes.c_int(side) for side in (case.m, case.n, case.k or 0))
    of_b, ldb = (_AS_IT_IS, n) if case.b_layout == BY_ROWS else (_TRANSPOSED, k)
    name, scalar = _GEMM.get(case.dtype, ("cublasGemmEx", ctypes.c_float))
    one, zero = scalar(1), scalar(0)
    kind = [_TYPES[case.dtype]] if case.dtype in _TYPES else []
    how = [_BY_TF32 if case.dtype == TF32 else _IN_FLOAT32, _ANY_ALGORITHM] if kind else []

    def enqueue(stream: int, c: Any, a: Any, b: Any) -> None:
        library = _opened(int(checked(driver.cuCtxGetDevice())))
        # cuBLAS counts down columns: what is C in rows is its transpose there, and that is B's times A's.
        sides, first, second = (n, m, k), (_pointer(b), *kind, ldb), (_pointer(a), *kind, k)
        operation = (library.on(stream), of_b, _AS_IT_IS, *sides)
        library.call(
            name, *operation, ctypes.byref(one), *first, *second, ctypes.byref(zero), _pointer(c), *kind, n, *how
        )

    return LibraryCall(enqueue)


def unsupported(case: Case) -> str | None:
    """The refusal with the way to install cuBLAS if it is missing, or None."""
    try:
        _path()
    except RuntimeError:
        return f"cuBLAS is not installed: {extra('peers')}"
    return None


KERNEL = Kernel(
    problem="matmul",
    name="cublas",
    kind="cuda",
    summary="cuBLAS; of float32 with TF32 off",
    build=build,
    blocks=False,
    dtypes=(*WIDE, *HALVES, TF32),
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    standard=False,
    compiler="cublas",
    peer=True,
)
