"""torch: PyTorch's ``torch.mm``, in the full precision of the inputs: TF32 is on for the type tf32 alone.

Of 16-bit types it adds up all of k in float32: reductions of parts in 16 bits are switched off too. Of float8 it is
``torch._scaled_mm``, which calls cuBLASLt, with scales of one and fast accumulation: the sums are those of the tensor
cores alone, as in the kernels here.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from smembench.kernels.common.peers import as_torch, needs
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import FLOAT8, TF32, produced

_NAMES = {TF32: "float32", FLOAT8: "float8_e4m3fn"}
"""PyTorch's names of types that have another here."""
_ALIGNED = 16
"""Sides of matrices of float8 are multiples of this."""


def build(case: Case) -> LibraryCall:
    """Program for ``(stream, c, a, b)``."""
    m, n, k = case.m, case.n, case.depth

    def enqueue(stream: int, c: Any, a: Any, b: Any) -> None:
        import torch

        def of(array: Any, shape: tuple[int, int], dtype: str) -> Any:
            bits = array.view(f"i{array.dtype.itemsize}")
            return as_torch(bits, shape).view(getattr(torch, _NAMES.get(dtype, dtype)))

        torch.backends.cuda.matmul.allow_tf32 = case.dtype == TF32
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        first, out = of(a, (m, k), case.dtype), of(c, (m, n), produced(case.dtype))
        by_rows = case.b_layout == BY_ROWS
        second = of(b, (k, n), case.dtype) if by_rows else of(b, (n, k), case.dtype).t()
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            if case.dtype == FLOAT8:
                one = _one(torch.cuda.current_device())
                torch._scaled_mm(first, second, one, one, out_dtype=out.dtype, use_fast_accum=True, out=out)
            else:
                torch.mm(first, second, out=out)

    return LibraryCall(enqueue)


@cache
def _one(device: int) -> Any:
    """A scale of one in a GPU's memory, made before any launch is captured."""
    import torch

    return torch.ones((), device=f"cuda:{device}")


def unsupported(case: Case) -> str | None:
    """The refusal of float8 that cuBLASLt does not take, the way to install PyTorch if it is missing, or None."""
    if case.dtype == FLOAT8:
        if case.b_layout == BY_ROWS:
            return f"cuBLASLt takes {FLOAT8} only with B by columns"
        if odd := next((side for side in (case.n, case.depth) if side % _ALIGNED), None):
            return f"cuBLASLt takes sides of {FLOAT8} that are multiples of {_ALIGNED}, not {odd}"
    return needs("torch", "torch")(case)


KERNEL = Kernel(
    problem="matmul",
    name="torch",
    kind="cuda",
    summary="PyTorch's torch.mm; of float32 with TF32 off",
    build=build,
    blocks=False,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    standard=False,
    compiler="torch",
    peer=True,
)
