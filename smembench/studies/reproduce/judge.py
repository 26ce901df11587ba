"""Judge the documents' claims on a device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from smembench.studies.reproduce import blog, guide, slides
from smembench.studies.reproduce.claim import Claim
from smembench.studies.reproduce.figures import Document
from smembench.studies.reproduce.measures import Answer, Here, Latency, Limit, Missing, Sum

CLAIMS: Mapping[Document, tuple[Claim, ...]] = {
    Document.SLIDES: slides.CLAIMS,
    Document.GUIDE: guide.CLAIMS,
    Document.BLOG: blog.CLAIMS,
}


class Holds(StrEnum):
    """Verdict on a claim on a device."""

    YES = "yes"
    NO = "no"
    NOT_ANY_MORE = "not any more"
    UNDECIDED = "undecided"
    MORE = "more"


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim with its answer and whether it holds; without an answer, why there is none."""

    claim: Claim
    answer: Answer | Missing
    holds: Holds | None


def judge(here: Here, claims: Iterable[Claim]) -> list[Judged]:
    """Claims on one device."""
    answers = ((claim, claim.measure.on(here)) for claim in claims)
    return [
        Judged(claim, answer, None if isinstance(answer, Missing) else holds(claim, answer, on_gpu=here.is_gpu))
        for claim, answer in answers
    ]


def holds(claim: Claim, answer: Answer, *, on_gpu: bool = True) -> Holds:
    """Yes if all of the interval is where it has to be, undecided if a part of it is.

    Two figures that a document prints agree if anything rounds to both. ``more`` is a ratio beyond what is claimed.
    ``not any more`` says of a GPU that the claim held on the document's own: that its figures bear it out, or that the
    limit which it names was one.
    """
    bounds = claim.holds_in
    if bounds.low <= answer.low and answer.high <= bounds.high:
        return Holds.YES
    if answer.high >= bounds.low and answer.low <= bounds.high:
        return Holds.YES if isinstance(claim.measure, Sum) else Holds.UNDECIDED
    if answer.low > bounds.high and isinstance(claim.measure, Latency) and claim.measure.over:
        return Holds.MORE
    then = [bounds.low <= value <= bounds.high for value in claim.published.values()]
    was_true = bool(claim.true_on) if isinstance(claim.measure, Limit) else bool(then) and all(then)
    return Holds.NOT_ANY_MORE if on_gpu and was_true else Holds.NO
