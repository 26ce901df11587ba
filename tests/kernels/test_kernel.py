"""What the declaration of a kernel says of devices."""

from __future__ import annotations

import pytest

from smembench.kernels.kernel import Kernel
from smembench.model.case import Case


@pytest.mark.parametrize(
    ("needs", "capability", "has"),
    [
        ("", "5.0", True),
        ("8.0", "7.5", False),
        ("8.0", "8.0", True),
        ("8.0", "12.0", True),  # as a number, not as text
        ("9.0a", "9.0", True),
        ("9.0a", "10.0", False),
        ("9.0a", "8.9", False),
        ("9.0a", None, True),
    ],
)
def test_a_device_has_the_instructions_of_a_kernel_or_not(needs: str, capability: str | None, has: bool) -> None:
    kernel = Kernel("matmul", "any", "cuda", needs=needs)
    case = Case("matmul", "any", "cuda:0", "float32", 8, 8, 8)
    assert (kernel.refusal(case, capability) is None) == has
