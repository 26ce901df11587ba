"""What the programming guide claims with a number or a comparison, in sections of any of its versions.

The numbers in ``says`` are the document's own, as it prints them; ``SMEMBENCH_DOCUMENTS=FOLDER pytest
tests/studies/test_reproduce_documents.py`` looks each of them up in the document's text.
"""

from __future__ import annotations

from smembench.model.case import Block
from smembench.studies.reproduce.claim import BANDWIDTH, BANKS, Claim, exactly
from smembench.studies.reproduce.measures import Pick, Reads, Times

_BLOCK = Block(16, 16)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "Shared Memory",
        "shared memory is much faster than global memory",
        BANDWIDTH,
        BANKS,
    ),
    Claim(
        "Shared Memory",
        "without shared memory A is read B.width times, B A.height times",
        Reads("naive", _BLOCK, 1024),
        "Each of a row's results reads the whole row of A; lanes that read one element share the request.",
        exactly(1024),
        assumed="1024×1024",
    ),
    Claim(
        "Shared Memory",
        "with it they are read B.width / block_size and A.height / block_size times; BLOCK_SIZE is 16",
        Reads("tiled", _BLOCK, 1024),
        "A block reads its tiles once for all of its threads.",
        exactly(1024 / 16),
        assumed="1024×1024",
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
