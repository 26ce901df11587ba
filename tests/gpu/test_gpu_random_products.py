"""On a real GPU: random products by the kernels that need tensor cores or asynchronous copies are right.

One per kernel; ``SMEMBENCH_CAMPAIGN=100`` tries a hundred. ``-rP`` prints the command of each.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import ceil

import pytest

from campaign import CAMPAIGN, chance
from on_gpu import output
from programs import case_of, first_dtype
from random_products import STEPS, hold
from smembench.devices.cuda import CudaDevice
from smembench.devices.cuda_description import why_unusable
from smembench.kernels.kernel import Kernel

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.untimed,
    pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable())),
]

PARTS = ceil(CAMPAIGN / 25)
"""Into how many tests a kernel's products are divided, so that several processes share them."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kernel", STEPS, ids=lambda kernel: kernel.name)
def test_random_products_are_right(gpu: CudaDevice, kernel: Kernel, part: int) -> None:
    case = case_of(kernel, 64, 64, 64, first_dtype(kernel))
    if reason := replace(kernel, unsupported=lambda case: None).refusal(case, gpu.info.compute_capability):
        pytest.skip(reason)
    hold(kernel, chance(f"{kernel.name} {part}"), ceil(CAMPAIGN / PARTS), partial(output, gpu))
