"""Claims of the slides with a number or a comparison.

The numbers in ``says`` are the document's own, as it prints them; ``SMEMBENCH_DOCUMENTS=FOLDER pytest
tests/studies/test_reproduce_documents.py`` looks each of them up in the document's text.
"""

from __future__ import annotations

from smembench.explain.occupancy import occupancy, shared_memory
from smembench.studies.reproduce.claim import BANDWIDTH, BANKS, FASTER, UNIFORM, Bounds, Claim, printed
from smembench.studies.reproduce.figures import BLOCKS, FIGURES, Figure, ratios, transpose_gb_s
from smembench.studies.reproduce.measures import Latency, Limit, Pick, Sum, Times


def _transposes(slower: str, faster: str, says: str, why: str) -> list[Claim]:
    """A row of the slides' table over another one, in each of the blocks that they may have used."""
    return [
        Claim(
            "Performance of transpose kernels",
            says,
            Times(Pick("transpose", slower, block), Pick("transpose", faster, block)),
            why,
            published=ratios("transpose", slower, faster),
            assumed=f"4096×4096, blocks of {block}",
        )
        for block in BLOCKS["transpose"]
    ]


def _rate(figure: Figure) -> Claim:
    """The slides' time and bandwidth of a kernel against each other."""
    elapsed_ms, gb_s = str(figure.elapsed_ms), str(figure.gb_s)
    ms = transpose_gb_s(float(gb_s))  # the bytes over a rate are its time
    return Claim(
        "Performance of transpose kernels",
        f"{figure.kernel}: {elapsed_ms} ms is {gb_s} GB/s ({figure.device})",
        Sum(f"2·4096²·4 bytes / {elapsed_ms} ms", transpose_gb_s, (elapsed_ms,)),
        f"At {gb_s} GB/s its bytes take {ms:.3f} ms.",
        printed(gb_s),
    )


_COLUMNS, _PADDED = (Pick("access", f"setRowReadCol{pad}") for pad in ("", "Pad"))
_PARALLEL, _SERIAL, _BROADCAST = (Pick("access", f"{name}Access") for name in ("parallel", "serial", "broadcast"))


def _parallelism(capability: str) -> float | None:
    """Blocks of 128 threads per SM with 1 KiB of shared memory each, over those with 48 KiB."""
    if shared_memory(capability) is None:
        return None
    few, many = (occupancy(capability, 128, 1024 * kib, None).blocks for kib in (48, 1))
    return many / few


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "Shared memory",
        "shared memory limits a device's parallelism",
        Limit(_parallelism, "times"),
        "An SM's shared memory is shared out among its blocks: the more each takes, the fewer fit.",
        FASTER,
        assumed="blocks of 128 threads with 1 KiB, over those with 48 KiB",
    ),
    Claim(
        "Shared memory versus global memory",
        "shared memory's latency is 20 to 30 times lower than DRAM's",
        Latency("global memory", over="shared memory"),
        "A load from DRAM crosses the chip and the L2 on its way, one from shared memory stays in its SM.",
        Bounds(20, 30),
    ),
    Claim(
        "Shared memory versus global memory",
        "shared memory's bandwidth is more than 10 times DRAM's",
        BANDWIDTH,
        BANKS,
        Bounds(10),
    ),
    Claim(
        "Bank conflicts",
        "addresses in one bank are served one after the other, those in different banks in parallel",
        Times(_SERIAL, _PARALLEL),
        "A bank serves one word per wavefront, so 32 words of one bank take 32 wavefronts.",
    ),
    Claim(
        "Bank conflicts",
        "a single address that all lanes read is a broadcast: no slower than parallel access",
        Times(_PARALLEL, _BROADCAST),
        "One wavefront gives a word to every lane that asks for it.",
        Bounds(0.95),
    ),
    Claim(
        "Memory padding",
        "one column of padding spreads a column of the tile over all banks",
        Times(_COLUMNS, _PADDED),
        "Rows of 33 words begin in 32 different banks; the loads are 32-way conflicts without padding.",
        assumed="a tile of 32×32 words",
    ),
    *_transposes(
        "naiveGmem",
        "copyGmem",
        "copyGmem is faster than naiveGmem",
        "A warp of naiveGmem stores down the output's columns: a sector of 32 bytes moves for each element, in "
        "blocks of 16×16 for two.",
    ),
    *_transposes(
        "naiveGmem",
        "transposeSmem",
        "transposeSmem is faster than naiveGmem",
        "Through the tile a warp loads and stores whole rows, and fills the sectors that it moves.",
    ),
    *_transposes(
        "transposeSmem",
        "transposeSmemPad",
        "transposeSmemPad is faster than transposeSmem",
        "In blocks of 32×32 padding removes 32-way conflicts of loads; in blocks of 16×16 it leaves 2-way ones of "
        "loads and stores, where loads had 8-way ones.",
    ),
    *(_rate(figure) for figure in FIGURES if figure.gb_s is not None),
    Claim(
        "Constant memory",
        "constant memory is for data that a warp's threads read uniformly",
        UNIFORM,
        "The constant cache serves one address per request at a time: a broadcast, or each of nine in turn.",
    ),
)
