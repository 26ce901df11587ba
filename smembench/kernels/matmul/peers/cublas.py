"""cublas: cuBLAS through CuPy, ``cupy.matmul``, in the full precision of the inputs: TF32 is off, as CuPy has it."""

from __future__ import annotations

from typing import Any

from smembench.case import Case
from smembench.kernels.peers import as_cupy, needs
from smembench.kernels.registry import Kernel, Program


def build(case: Case) -> Program:
    """Program for ``(stream, c, a, b)``."""
    m, n, k = case.m, case.n, case.k
    assert k is not None

    def enqueue(stream: int, c: Any, a: Any, b: Any) -> None:
        import cupy

        with cupy.cuda.ExternalStream(stream):
            cupy.matmul(as_cupy(a, (m, k)), as_cupy(b, (k, n)), out=as_cupy(c, (m, n)))

    return Program(enqueue, on_host=True)


KERNEL = Kernel(
    problem="matmul",
    name="cublas",
    kind="cuda",
    step=900,
    summary="cuBLAS through CuPy, TF32 off",
    build=build,
    blocks=False,
    refuse=needs("cupy", '"smembench[peers]"'),
    standard=False,
    compiler="cublas",
)
