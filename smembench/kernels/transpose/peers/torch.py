"""torch: PyTorch's copy of a transposed view, ``out.copy_(in.t())``."""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.peers import as_torch, needs
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.model.case import Case


def build(case: Case) -> LibraryCall:
    """Program for ``(stream, out, inp)``."""

    def enqueue(stream: int, out: Any, inp: Any) -> None:
        import torch

        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            as_torch(out, (case.n, case.m)).copy_(as_torch(inp, (case.m, case.n)).t())

    return LibraryCall(enqueue)


KERNEL = Kernel(
    problem="transpose",
    name="torch",
    kind="cuda",
    summary="PyTorch's copy of a transposed view",
    build=build,
    computes=TRANSPOSE,
    blocks=False,
    unsupported=needs("torch", "torch"),
    standard=False,
    compiler="torch",
    peer=True,
)
