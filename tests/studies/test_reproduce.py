from __future__ import annotations

import pytest

from conftest import Measured
from smembench.kernels.problems import PROBLEMS
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.studies.difference import difference
from smembench.studies.reproduce.claims import CLAIMS, Claim, Holds, holds
from smembench.studies.reproduce.figures import BLOCKS, FIGURES, SIZES, Figure, devices_of, figure_of, ratio
from smembench.views.reproduce import say

FAST = [0.9, 0.95, 1.0, 1.0, 1.05, 1.1]
SLOW = [2 * value for value in FAST]
PADDING = CLAIMS[2]


def run_of(measured: Measured, slower: list[float], faster: list[float]) -> Run:
    """A run of both kernels of the claim on padding."""
    return Run.of(Description(), [measured(PADDING.slower, slower), measured(PADDING.faster, faster)])


@pytest.mark.parametrize(
    "figure", [f for f in FIGURES if f.gb_s is not None], ids=lambda figure: f"{figure.device}-{figure.kernel}"
)
def test_bandwidths_follow_from_times(figure: Figure) -> None:
    # To the rounding of both, except that the slides' own naiveGmem rows are 0.06 % off.
    computed = 2 * SIZES["transpose"] ** 2 * 4 / figure.elapsed_ms / 1e6
    assert figure.gb_s == pytest.approx(computed, rel=7e-4 if figure.kernel == "naiveGmem" else 5e-4)


@pytest.mark.parametrize("problem", SIZES)
def test_every_device_of_the_documents_has_every_kernel(problem: str) -> None:
    kernels = {figure.kernel for figure in FIGURES if figure.problem == problem}
    assert kernels
    assert problem in PROBLEMS
    assert SIZES.keys() == BLOCKS.keys()
    assert all(figure_of(problem, kernel, device) for kernel in kernels for device in devices_of(problem))


def test_a_ratio_needs_both_sides() -> None:
    assert ratio("transpose", "naiveGmem", "copyGmem", "Tesla K40") == pytest.approx(2.57, abs=0.005)
    assert ratio("transpose", "naiveGmem", "copyGmem", "Tesla K80") is None


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.faster}-over-{claim.slower}")
def test_the_documents_bear_out_their_own_claims(claim: Claim) -> None:
    assert claim.documented()
    assert min(claim.documented()) > 1


@pytest.mark.parametrize(
    ("slower", "faster", "held", "verdict"),
    [
        (SLOW, FAST, Holds.YES, "yes: 2.00× over transposeSmem\n1.72–2.32, 6+6 samples\ndocuments 1.04, 1.10"),
        (FAST, SLOW, Holds.NO, "NO: 0.50×"),
        (FAST, FAST, Holds.UNDECIDED, "undecided: 1.00×"),
        ([1.0, 2.0, 3.0], [0.5, 1.5, 2.5], Holds.UNDECIDED, "undecided: 1.33×"),
        ([500.0] * 6, [1.0] * 6, Holds.YES, "yes: 500×"),
    ],
)
def test_claims_hold_only_where_intervals_are_apart(
    measured: Measured, slower: list[float], faster: list[float], held: Holds, verdict: str
) -> None:
    run = run_of(measured, slower, faster)
    effect = difference(run, *reversed(run.rows))
    assert effect is not None
    assert holds(effect) is held
    assert effect.low <= effect.ratio <= effect.high
    assert say(PADDING, effect, "6+6").startswith(verdict)


def test_a_single_sample_of_each_cannot_be_judged(measured: Measured) -> None:
    run = run_of(measured, [2.0], [1.0])
    assert difference(run, *reversed(run.rows)) is None
