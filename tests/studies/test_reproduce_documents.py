"""The documents' figures and claims as they print them, and their own arithmetic done again.

``SMEMBENCH_DOCUMENTS=FOLDER`` names a folder with the documents' texts, in which figures are then looked up.
"""

from __future__ import annotations

import os
import re
from decimal import Decimal
from itertools import chain
from operator import truediv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smembench.kernels.problems import PROBLEMS
from smembench.store.run import Run
from smembench.studies.reproduce.claim import Claim, exactly, printed
from smembench.studies.reproduce.figures import (
    BLOCKS,
    FIGURES,
    SIZES,
    Document,
    Figure,
    devices_of,
    figure_of,
    ratio,
    transpose_gb_s,
)
from smembench.studies.reproduce.judge import CLAIMS, Holds, holds
from smembench.studies.reproduce.measures import Answer, Here, Sum, rounded_from

CPU = Here(Run([]), "cpu")
EVERY = [
    pytest.param(document, claim, id=f"{document.name}-{claim.says[:40]}")
    for document, claims in CLAIMS.items()
    for claim in claims
]
FOLDER = os.environ.get("SMEMBENCH_DOCUMENTS", "")


@pytest.mark.parametrize(
    "figure", [f for f in FIGURES if f.gb_s is not None], ids=lambda figure: f"{figure.device}-{figure.kernel}"
)
def test_bandwidths_follow_from_times(figure: Figure) -> None:
    # As far as both are rounded, except that the slides' own naiveGmem rows are 0.06 % off.
    low, high = (transpose_gb_s(ms) for ms in reversed(rounded_from(f"{figure.elapsed_ms:.3f}")))
    least, most = rounded_from(f"{figure.gb_s:.2f}")
    assert (low <= most and least <= high) == (figure.kernel != "naiveGmem")
    assert figure.gb_s == pytest.approx(transpose_gb_s(figure.elapsed_ms), rel=7e-4)


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


def test_published_ratios_are_in_the_order_of_the_documents_columns() -> None:
    (claim,) = (one for one in CLAIMS[Document.SLIDES] if one.says.startswith("copyGmem is") and "16x16" in one.assumed)
    assert [(device, round(value, 2)) for device, value in claim.published.items()] == [
        ("Tesla M2090", 3.45),
        ("Tesla K40", 2.57),
    ]


@pytest.mark.parametrize(("document", "claim"), EVERY)
def test_its_own_figures_bear_a_claim_out_but_for_the_blogs_summary(document: Document, claim: Claim) -> None:
    bounds = claim.holds_in
    borne_out = all(bounds.low <= value <= bounds.high for value in claim.published.values())
    assert borne_out == (claim.place != "6. Summary")
    assert claim.why.endswith(".")


def test_the_documents_arithmetic_is_done_again() -> None:
    done = {
        claim.says: (answer.text, holds(claim, answer))
        for claim in chain.from_iterable(CLAIMS.values())
        if isinstance(claim.measure, Sum) and isinstance(answer := claim.measure.on(CPU), Answer)
    }
    assert done == {
        "naiveGmem: 3.611 ms is 37.19 GB/s (Tesla M2090)": ("37.17", Holds.NO),
        "naiveGmem: 1.947 ms is 68.98 GB/s (Tesla K40)": ("68.94", Holds.NO),
        "copyGmem: 1.048 ms is 128.07 GB/s (Tesla M2090)": ("128.07", Holds.YES),
        "transposeSmem: 1.551 ms is 86.54 GB/s (Tesla M2090)": ("86.54", Holds.YES),
        "transposeSmemPad: 1.416 ms is 94.79 GB/s (Tesla M2090)": ("94.79", Holds.YES),
        "copyGmem: 0.758 ms is 177.15 GB/s (Tesla K40)": ("177.07", Holds.YES),
        "transposeSmem: 1.149 ms is 116.82 GB/s (Tesla K40)": ("116.81", Holds.YES),
        "transposeSmemPad: 1.102 ms is 121.83 GB/s (Tesla K40)": ("121.79", Holds.YES),
        "100,000 numbers take 1000 blocks of 128 threads": ("782", Holds.NO),
        "582.865ms over 2.42381ms is 240.19": ("240.47", Holds.NO),
        "at 240x, a minute on the GPU is 4 hours on the CPU": ("4", Holds.YES),
    }
    (rate,) = (claim for claim in CLAIMS[Document.SLIDES] if "37.19" in claim.says)
    assert "3.609 ms" in rate.why


@given(st.decimals(min_value=1, max_value=1000, places=3))
def test_what_rounds_to_a_printed_figure_is_printed_so(value: Decimal) -> None:
    bounds = printed(str(value))
    assert bounds.high - bounds.low == pytest.approx(1e-3)
    for inside in (bounds.low + 1e-6, bounds.high - 1e-6):
        assert f"{inside:.3f}" == str(value)
    assert printed("128") == exactly(128)


def test_arithmetic_has_the_bounds_of_its_rounded_figures() -> None:
    answer = Sum("1.0 / 2.0", truediv, ("1.0", "2.0")).on(CPU)
    assert isinstance(answer, Answer)
    assert (answer.value, answer.low, answer.high) == pytest.approx((0.5, 0.95 / 2.05, 1.05 / 1.95))
    assert answer.beside == "1.0 / 2.0\n0.46–0.54 by rounding"


NUMBER = re.compile(r"\d[\d.,]*(?<=\d)")


def the_document(document: Document) -> str:
    """The text of a document, or of all its versions."""
    marks = {
        Document.SLIDES: "SHARED AND CONSTANT MEMORY",
        Document.BLOG: "Sharing is Caring",
        Document.GUIDE: "is allocated using the",
    }
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(FOLDER).glob("*.txt"))]
    return "\n".join(text for text in texts if marks[document] in text)


@pytest.mark.skipif(not FOLDER, reason="SMEMBENCH_DOCUMENTS names no folder with the documents' texts")
def test_a_claims_numbers_stand_in_its_place_in_the_document() -> None:
    absent = []
    for document, claims in CLAIMS.items():
        text = the_document(document).casefold()
        places = dict.fromkeys(re.escape(claim.place.casefold()) for claim in claims)
        parts = re.split(f"({'|'.join(places)})", text)
        result = list(zip(parts[1::2], parts[2::2], strict=True))
        for claim in claims:
            own = [part for place, part in result if place == claim.place.casefold()]
            assert own, f"{claim.place} is no place in {document}"
            numbers = NUMBER.findall(" ".join(own))
            absent += [(claim.says, number) for number in NUMBER.findall(claim.says) if number not in numbers]
    assert absent == []


@pytest.mark.skipif(not FOLDER, reason="SMEMBENCH_DOCUMENTS names no folder with the documents' texts")
def test_a_figure_stands_in_its_document() -> None:
    for figure in FIGURES:
        lines = the_document(figure.source).splitlines()
        kernel = {"cpu": "CPU Time", "naive": "Naive Time", "tiled": "Shared Memory Time"}.get(
            figure.kernel, figure.kernel
        )
        wanted = [f"{figure.elapsed_ms:g}", *([f"{figure.gb_s:g}"] if figure.gb_s else [])]
        of_kernel = [NUMBER.findall(line) for line in lines if kernel in line]
        assert any(all(number in numbers for number in wanted) for numbers in of_kernel), figure
