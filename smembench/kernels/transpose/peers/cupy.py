"""cupy: CuPy's copy of a transposed view, ``cupy.copyto(out, in.T)``."""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.peers import as_cupy, cupy_stream, needs
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.model.case import Case


def build(case: Case) -> LibraryCall:
    """Program for ``(stream, out, inp)``."""

    def enqueue(stream: int, out: Any, inp: Any) -> None:
        import cupy

        with cupy_stream(stream):
            cupy.copyto(as_cupy(out, (case.n, case.m)), as_cupy(inp, (case.m, case.n)).T)

    return LibraryCall(enqueue)


KERNEL = Kernel(
    problem="transpose",
    name="cupy",
    kind="cuda",
    summary="CuPy's copy of a transposed view",
    build=build,
    computes=TRANSPOSE,
    blocks=False,
    unsupported=needs("cupy", '"smembench[peers]"'),
    standard=False,
    compiler="cupy",
    peer=True,
)
