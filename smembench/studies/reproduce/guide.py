"""Claims of the programming guide with a number or a comparison, in sections of any of its versions.

The numbers in ``says`` are the document's own, as it prints them; ``SMEMBENCH_DOCUMENTS=FOLDER pytest
tests/studies/test_reproduce_documents.py`` looks each of them up in the document's text.
"""

from __future__ import annotations

from smembench.model.case import Block
from smembench.studies.reproduce.claim import BANDWIDTH, BANKS, MUCH_FASTER, Claim, at, exactly
from smembench.studies.reproduce.measures import Pick, Reads, Times

_BLOCK = Block(16, 16)
_SIDES = _HEIGHT, _WIDTH, _ = 512, 1024, 256
"""A's height, B's width, and A's width, which is B's height: all different, so that none is taken for another."""


def _reads(kernel: str, says: str, matrix: str, times: float) -> Claim:
    """How often the naive or the tiled product reads an element of A or B."""
    measure = Reads(kernel, _BLOCK, *_SIDES, matrix)
    return Claim(says, measure, exactly(times), assumed="A of 512×256, B of 256×1024")


def _pinned(short: str, way: str) -> Claim:
    """Copies from and to page-locked memory against those of pageable memory."""
    return Claim(
        f"page-locked memory is set against pageable memory; {way}",
        Times(Pick("transfer", f"{short}Pageable"), Pick("transfer", f"{short}Pinned")),
        assumed="that its copies are faster; 32 MiB",
    ).because("The device reads page-locked memory by itself; pageable memory goes through a page-locked buffer first.")


_READ = (("A", "B.width", _WIDTH, "row"), ("B", "A.height", _HEIGHT, "column"))
_ONCE = "A block reads its tiles once for all of its threads."

CLAIMS: tuple[Claim, ...] = (
    *at(
        "Shared Memory",
        Claim(
            "shared memory is much faster than global memory", BANDWIDTH, MUCH_FASTER, assumed="much: at least twice"
        ).because(BANKS),
        *(
            _reads("naive", f"without shared memory {matrix} is read {side} times", matrix, times).because(
                f"Each of a {line}'s results reads the whole {line} of {matrix}."
            )
            for matrix, side, times, line in _READ
        ),
        *(
            _reads(
                "tiled", f"with it {matrix} is read {side} / block_size times; BLOCK_SIZE is 16", matrix, times / 16
            ).because(_ONCE)
            for matrix, side, times, _ in _READ
        ),
    ),
    *at("Page-Locked Host Memory", _pinned("h2d", "host to device"), _pinned("d2h", "device to host")),
)
