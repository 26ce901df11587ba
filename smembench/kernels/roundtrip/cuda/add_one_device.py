"""addOneDevice: the documents' add_one alone, with both arrays in the GPU's memory: no copy, no wait of the host.

What a program pays whose array stays on the GPU between kernels. Its launch is timed by events, as those of other
problems, and the host's part of it is not in the time.
"""

from __future__ import annotations

from functools import partial

from smembench.kernels.kernel import Kernel
from smembench.kernels.roundtrip.cuda.add_one_pageable import build

KERNEL = Kernel(
    problem="roundtrip",
    name="addOneDevice",
    kind="cuda",
    summary="add one to an array in the GPU's memory: no copies",
    build=partial(build, place="device"),
)
