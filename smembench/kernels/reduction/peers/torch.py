"""torch: PyTorch's ``torch.sum(in, out=out)``, in the dtype of the elements."""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.peers import as_torch, needs
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall
from smembench.kernels.reduction.problem import SUM
from smembench.model.case import Case


def build(case: Case) -> LibraryCall:
    """Program for ``(stream, out, inp)``."""

    def enqueue(stream: int, out: Any, inp: Any) -> None:
        import torch

        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            torch.sum(as_torch(inp, (case.n,)), dim=0, dtype=getattr(torch, case.dtype), out=as_torch(out, ()))

    return LibraryCall(enqueue)


KERNEL = Kernel(
    problem="reduction",
    name="torch",
    kind="cuda",
    summary="PyTorch's torch.sum",
    build=build,
    computes=SUM,
    blocks=False,
    unsupported=needs("torch", "torch"),
    standard=False,
    compiler="torch",
    peer=True,
)
