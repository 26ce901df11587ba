"""Kernels of other libraries: planned with --peers or by name, skipped with the way to install what is missing."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda.bindings.driver import CUresult

import programs
from smembench.kernels import registry
from smembench.kernels.common.peers import needs
from smembench.kernels.matmul.peers import cublas
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.run.plan import Planned


def planned(problem: str, **sweep: object) -> list[Planned]:
    return programs.planned({"problem": problem, "n": 64, "block": "16x16", "device": "cuda", **sweep})


@pytest.mark.parametrize("problem", [name for name in PROBLEMS if registry.peers(name)])
def test_peers_run_beside_the_others_when_asked_for(problem: str) -> None:
    without, with_peers = planned(problem), planned(problem, peers=True)
    assert with_peers[: len(without)] == without
    peers = [item.case for item in with_peers[len(without) :]]
    assert [case.kernel for case in peers] == [case.compiler for case in peers] == list(registry.peers(problem))


def test_a_peer_is_planned_by_name_whatever_the_compiler() -> None:
    (peer,) = [item for item in planned("matmul", kernel="naive,cublas", compiler="nvrtc") if item.case.block is None]
    assert peer.case.kernel == "cublas"
    assert bool(peer.skip) == (cublas.unsupported(peer.case) is not None)


def test_cublas_is_skipped_where_its_library_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise RuntimeError("no such library")

    monkeypatch.setattr(cublas, "_path", nowhere)
    *_, item = planned("matmul", kernel="naive,cublas")
    assert item.skip == "cuBLAS is not installed: pip install 'smembench[peers]'"


class ColumnMajor:
    """cuBLAS on host memory: C = A·B of matrices stored column after column."""

    def on(self, stream: int) -> int:
        return stream

    def call(self, name: str, *arguments: Any) -> None:
        _, _, _, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = arguments
        number = {"cublasSgemm_v2": ctypes.c_float, "cublasDgemm_v2": ctypes.c_double}[name]
        assert (alpha._obj.value, beta._obj.value) == (1, 0)
        assert type(alpha._obj) is type(beta._obj) is number

        def matrix(pointer: Any, leading: Any, columns: Any) -> Any:
            flat = ctypes.cast(pointer, ctypes.POINTER(number))
            return np.ctypeslib.as_array(flat, (columns.value, leading.value)).T

        matrix(c, ldc, n)[:] = matrix(a, lda, k)[: m.value] @ matrix(b, ldb, n)[: k.value]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cublas_is_given_the_transposes(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    rng = np.random.default_rng()
    a, b = rng.standard_normal((5, 3)).astype(dtype), rng.standard_normal((3, 7)).astype(dtype)
    c = np.full((5, 7), np.nan, dtype)
    monkeypatch.setattr(cublas, "_opened", lambda device: ColumnMajor())
    monkeypatch.setattr(cublas, "driver", SimpleNamespace(cuCtxGetDevice=lambda: (CUresult.CUDA_SUCCESS, 0)))
    monkeypatch.setattr(cublas, "_pointer", lambda array: ctypes.c_void_p(array.ctypes.data))
    program = cublas.build(Case("matmul", "cublas", "cuda:0", dtype, 5, 7, 3, compiler="cublas"))
    program.enqueue(1, c, a, b)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_a_missing_package_is_named_with_the_way_to_install_it() -> None:
    case = Case("transpose", "cupy", "cuda:0", "float32", 8, 8)
    assert needs("no_such_package", "its-wheel")(case) == "no_such_package is not installed: pip install its-wheel"
    assert needs("numpy", "numpy")(case) is None
