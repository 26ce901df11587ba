"""MatMul: the programming guide's host function around MatMulKernel, from host memory to host memory.

1. Allocate A, B and C on the device.
2. Copy A and B to the device.
3. Launch MatMulKernel.
4. Copy C to the host.
5. Free A, B and C.

All of it is timed, by the host's clock, with the launch from Python. The host's arrays are pageable, as the guide's
are. Step 5 is done at the beginning of the next launch, so that the guards of C can be checked.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.common.grids import square_only
from smembench.kernels.matmul.cuda import mat_mul_kernel
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``, whose arrays are in host memory."""
    return replace(mat_mul_kernel.build(case), inputs="pageable", output="pageable", allocates=True)


def unsupported(case: Case) -> str | None:
    """The refusal of a block that is not square or of a cold cache, which the timed copies would fill, or None."""
    if case.cache != "warm":
        return f"cache {case.cache}: {case.kernel} copies its arrays to the device, and is timed warm only"
    return square_only(case)


KERNEL = replace(
    mat_mul_kernel.KERNEL,
    name="MatMul",
    summary="the programming guide's host function: allocate, copy, MatMulKernel, copy back, free",
    build=build,
    computes="the product, with its copies",  # so that tune does not rank it among kernels without copies
    unsupported=unsupported,
    strided=False,
)
