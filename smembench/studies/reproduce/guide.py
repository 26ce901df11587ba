"""Claims of the programming guide with a number or a comparison, in sections of any of its versions.

The numbers in ``says`` are the document's own, as it prints them; ``SMEMBENCH_DOCUMENTS=FOLDER pytest
tests/studies/test_reproduce_documents.py`` looks each of them up in the document's text.
"""

from __future__ import annotations

from smembench.model.case import Block
from smembench.studies.reproduce.claim import BANDWIDTH, BANKS, MUCH_FASTER, Claim, exactly
from smembench.studies.reproduce.measures import Pick, Reads, Times

_BLOCK = Block(16, 16)
_SIDES = _HEIGHT, _WIDTH, _ = 512, 1024, 256
"""A's height, B's width, and A's width, which is B's height: all different, so that none is taken for another."""

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "Shared Memory",
        "shared memory is much faster than global memory",
        BANDWIDTH,
        BANKS,
        MUCH_FASTER,
        assumed="much: at least twice",
    ),
    *(
        Claim(
            "Shared Memory",
            f"without shared memory {matrix} is read {side} times",
            Reads("naive", _BLOCK, *_SIDES, matrix),
            why,
            exactly(times),
            assumed="A of 512×256, B of 256×1024",
        )
        for matrix, side, times, why in (
            ("A", "B.width", _WIDTH, "Each of a row's results reads the whole row of A."),
            ("B", "A.height", _HEIGHT, "Each of a column's results reads the whole column of B."),
        )
    ),
    *(
        Claim(
            "Shared Memory",
            f"with it {matrix} is read {side} / block_size times; BLOCK_SIZE is 16",
            Reads("tiled", _BLOCK, *_SIDES, matrix),
            "A block reads its tiles once for all of its threads.",
            exactly(times / 16),
            assumed="A of 512×256, B of 256×1024",
        )
        for matrix, side, times in (("A", "B.width", _WIDTH), ("B", "A.height", _HEIGHT))
    ),
    *(
        Claim(
            "Page-Locked Host Memory",
            f"page-locked memory is set against pageable memory; {way}",
            Times(Pick("transfer", f"{short}Pageable"), Pick("transfer", f"{short}Pinned")),
            "The device reads page-locked memory by itself; pageable memory goes through a page-locked buffer first.",
            assumed="that its copies are faster; 32 MiB",
        )
        for short, way in (("h2d", "host to device"), ("d2h", "device to host"))
    ),
)
