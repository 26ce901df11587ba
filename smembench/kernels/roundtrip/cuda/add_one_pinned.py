"""addOnePinned: addOnePageable with the arrays in page-locked host memory.

Both copies go at the speed of the link; the launch and the waiting stay, and weigh the more.
"""

from __future__ import annotations

from functools import partial

from smembench.kernels.kernel import Kernel
from smembench.kernels.roundtrip.cuda.add_one_pageable import build

KERNEL = Kernel(
    problem="roundtrip",
    name="addOnePinned",
    kind="cuda",
    summary="copy to the device, add one, copy back; page-locked memory",
    build=partial(build, place="pinned"),
)
