"""memcpy: cudaMemcpy device to device, the ceiling that ``percent_of_copy`` refers to.

No kernel that moves every byte once is much faster: it reads and writes in the widest accesses the hardware has.
"""

from __future__ import annotations

from smembench.case import Case
from smembench.cuda_api import copy
from smembench.kernels.registry import Kernel, Program
from smembench.problems.transpose import COPY


def build(case: Case) -> Program:
    """Program for ``(stream, out, inp)``."""
    return Program(copy, on_host=True)


KERNEL = Kernel(
    problem="transpose",
    name="memcpy",
    kind="cuda",
    step=0,
    summary="cudaMemcpy device to device: the ceiling of % of memcpy",
    build=build,
    computes=COPY,
    blocks=False,
)
