"""torch: PyTorch's ``torch.mm``, in the full precision of the inputs: TF32 is switched off.

Of 16-bit types it adds up all of k in float32: reductions of parts in 16 bits are switched off too.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.peers import as_torch, needs
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case


def build(case: Case) -> LibraryCall:
    """Program for ``(stream, c, a, b)``."""
    m, n, k = case.m, case.n, case.k
    assert k is not None

    def enqueue(stream: int, c: Any, a: Any, b: Any) -> None:
        import torch

        def of(array: Any, shape: tuple[int, int]) -> Any:
            return as_torch(array.view(f"i{array.dtype.itemsize}"), shape).view(getattr(torch, case.dtype))

        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            second = of(b, (k, n)) if case.b_layout == BY_ROWS else of(b, (n, k)).t()
            torch.mm(of(a, (m, k)), second, out=of(c, (m, n)))

    return LibraryCall(enqueue)


KERNEL = Kernel(
    problem="matmul",
    name="torch",
    kind="cuda",
    summary="PyTorch's torch.mm, TF32 off",
    build=build,
    blocks=False,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=needs("torch", "torch"),
    standard=False,
    compiler="torch",
    peer=True,
)
