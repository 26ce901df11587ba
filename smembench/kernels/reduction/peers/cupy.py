"""cupy: CuPy's ``cupy.sum(in, out=out)``, in the dtype of the elements."""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.peers import as_cupy, cupy_stream, needs
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall
from smembench.kernels.reduction.problem import SUM
from smembench.model.case import Case


def build(case: Case) -> LibraryCall:
    """Program for ``(stream, out, inp)``."""

    def enqueue(stream: int, out: Any, inp: Any) -> None:
        import cupy

        with cupy_stream(stream):
            cupy.sum(as_cupy(inp, (case.n,)), dtype=case.dtype, out=as_cupy(out, ()))

    return LibraryCall(enqueue)


KERNEL = Kernel(
    problem="reduction",
    name="cupy",
    kind="cuda",
    summary="CuPy's cupy.sum",
    build=build,
    computes=SUM,
    blocks=False,
    unsupported=needs("cupy", '"smembench[peers]"'),
    standard=False,
    compiler="cupy",
    peer=True,
)
