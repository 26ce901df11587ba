"""Random products: the plan takes or refuses what is drawn, and a kernel that is wrong does not pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from campaign import CAMPAIGN, chance
from programs import cuda_kernel, multiplied, planned
from random_products import STEPS, Run, drawn, flags, hold
from smembench.devices.base import POISON
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import BY_ROWS, Case
from smembench.model.errors import UsageError
from smembench.run.plan import Planned

if TYPE_CHECKING:
    from smembench.model.problem import Array

MATMUL = PROBLEMS["matmul"]
DENSE = [replace(kernel, strided=False) for kernel in STEPS]
"""Stand-ins multiply no sub-matrices."""


@pytest.mark.parametrize("kernel", STEPS, ids=lambda kernel: kernel.name)
def test_the_command_is_of_the_same_case_or_refused_with_the_kernels_reason(kernel: Kernel) -> None:
    rng, refused = chance(kernel.name), 0
    for _ in range(50 * CAMPAIGN):
        case = drawn(rng, kernel)
        if reason := kernel.refusal(case):
            refused += 1
            with pytest.raises(UsageError) as raised:
                planned({"problem": "matmul", **flags(case)})
            assert str(raised.value) == f"nothing to measure: {reason}"
        else:
            assert planned({"problem": "matmul", **flags(case)}) == [Planned(case)]
    assert (refused > 0) == kernel.name.startswith(
        ("wgmma", "streamK", "fewRows", "heuristic")
    )  # of few types, or of too large a tile of one


def product(case: Case, inputs: tuple[Array, ...]) -> Array:
    """A case's product by NumPy."""
    a, b = inputs
    by_rows = b.reshape(case.depth, case.n) if case.b_layout == BY_ROWS else b.reshape(case.n, case.depth).T
    return np.ascontiguousarray(multiplied(case.dtype, a.reshape(case.m, case.depth), np.ascontiguousarray(by_rows)))


def by_numpy(spoil: Callable[[Array], object] = lambda c: None) -> Run:
    def run(case: Case) -> Callable[[tuple[Array, ...]], Array]:
        def launch(inputs: tuple[Array, ...]) -> Array:
            c = product(case, inputs)
            spoil(c)
            return c.ravel()

        return launch

    return run


@pytest.mark.parametrize("kernel", DENSE, ids=lambda kernel: kernel.name)
def test_right_products_pass(kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    hold(kernel, chance(f"{kernel.name} on NumPy"), 3 * CAMPAIGN, by_numpy())
    *commands, counts = capsys.readouterr().out.splitlines()
    assert len(commands) == 3 * CAMPAIGN
    assert counts.startswith(f"{kernel.name}: {3 * CAMPAIGN} products right, by ")


@pytest.mark.parametrize("kernel", DENSE, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda c: c[-1:, -1:].view("u1").fill(POISON), id="the last entry is not written"),
        pytest.param(lambda c: c[:16, :8].fill(0), id="a fragment is zero"),
    ],
)
def test_a_wrong_product_fails_and_its_command_is_printed_last(
    kernel: Kernel, spoil: Callable[[Array], object], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError) as raised:
        hold(kernel, chance(f"{kernel.name} on NumPy"), 3, by_numpy(spoil))
    options = capsys.readouterr().out.splitlines()[-1].split()
    m, n, k = (options[options.index(f"--{axis}") + 1] for axis in "mnk")
    assert str(raised.value).startswith(f"matmul/{kernel.name}/cuda:0/")
    assert f"/{m}x{k}x{n}/" in str(raised.value)


def test_a_kernel_that_refuses_everything_fails() -> None:
    refusing = replace(cuda_kernel("matmul", "mmaPlain"), unsupported=lambda case: "no")
    with pytest.raises(AssertionError, match="3000 products refused, 0 right"):
        hold(refusing, chance("refusing"), 3, by_numpy())
