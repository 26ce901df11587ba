"""torch: PyTorch's ``torch.mm``, in the full precision of the inputs: TF32 is switched off."""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.peers import as_torch, needs
from smembench.kernels.registry import Kernel, Program
from smembench.model.case import Case


def build(case: Case) -> Program:
    """Program for ``(stream, c, a, b)``."""
    m, n, k = case.m, case.n, case.k
    assert k is not None

    def enqueue(stream: int, c: Any, a: Any, b: Any) -> None:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            torch.mm(as_torch(a, (m, k)), as_torch(b, (k, n)), out=as_torch(c, (m, n)))

    return Program(enqueue, on_host=True)


KERNEL = Kernel(
    problem="matmul",
    name="torch",
    kind="cuda",
    step=910,
    summary="PyTorch's torch.mm, TF32 off",
    build=build,
    blocks=False,
    refuse=needs("torch", "torch"),
    standard=False,
    compiler="torch",
)
