"""torch: PyTorch's ``torch.mm``, in the full precision of the inputs: TF32 is switched off."""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.peers import as_torch, needs
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall
from smembench.model.case import Case


def build(case: Case) -> LibraryCall:
    """Program for ``(stream, c, a, b)``."""
    m, n, k = case.m, case.n, case.k
    assert k is not None

    def enqueue(stream: int, c: Any, a: Any, b: Any) -> None:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            torch.mm(as_torch(a, (m, k)), as_torch(b, (k, n)), out=as_torch(c, (m, n)))

    return LibraryCall(enqueue)


KERNEL = Kernel(
    problem="matmul",
    name="torch",
    kind="cuda",
    summary="PyTorch's torch.mm, TF32 off",
    build=build,
    blocks=False,
    unsupported=needs("torch", "torch"),
    standard=False,
    compiler="torch",
    peer=True,
)
