"""Claims of the slides with a number or a comparison.

The numbers in ``says`` are the document's own, as it prints them; ``SMEMBENCH_DOCUMENTS=FOLDER pytest
tests/studies/test_reproduce_documents.py`` looks each of them up in the document's text.
"""

from __future__ import annotations

from smembench.explain.occupancy import occupancy, shared_memory
from smembench.studies.reproduce.claim import BANDWIDTH, BANKS, FASTER, UNIFORM, Bounds, Claim, at, printed
from smembench.studies.reproduce.figures import BLOCKS, FIGURES, Figure, ratios, transpose_gb_s
from smembench.studies.reproduce.measures import Latency, Limit, Pick, Sum, Times


def _transposes(slower: str, faster: str, why: str) -> list[Claim]:
    """A row of the slides' table over another one, in each of the blocks that they may have used."""
    return [
        Claim(
            f"{faster} is faster than {slower}",
            Times(Pick("transpose", slower, block), Pick("transpose", faster, block)),
            published=ratios("transpose", slower, faster),
            assumed=f"4096×4096, blocks of {block}",
        ).because(why)
        for block in BLOCKS["transpose"]
    ]


def _rate(figure: Figure) -> Claim:
    """The slides' time and bandwidth of a kernel against each other."""
    elapsed_ms, gb_s = str(figure.elapsed_ms), str(figure.gb_s)
    ms = transpose_gb_s(float(gb_s))  # the bytes over a rate are its time
    return Claim(
        f"{figure.kernel}: {elapsed_ms} ms is {gb_s} GB/s ({figure.device})",
        Sum(f"2·4096²·4 bytes / {elapsed_ms} ms", transpose_gb_s, (elapsed_ms,)),
        printed(gb_s),
    ).because(f"At {gb_s} GB/s its bytes take {ms:.3f} ms.")


_COLUMNS, _PADDED = (Pick("access", f"setRowReadCol{pad}") for pad in ("", "Pad"))
_PARALLEL, _SERIAL, _BROADCAST = (Pick("access", f"{name}Access") for name in ("parallel", "serial", "broadcast"))


def _parallelism(capability: str) -> float | None:
    """Blocks of 128 threads per SM with 1 KiB of shared memory each, over those with 48 KiB."""
    if shared_memory(capability) is None:
        return None
    few, many = (occupancy(capability, 128, 1024 * kib, None).blocks for kib in (48, 1))
    return many / few


CLAIMS: tuple[Claim, ...] = (
    *at(
        "Shared memory",
        Claim(
            "shared memory limits a device's parallelism",
            Limit(_parallelism, "times"),
            FASTER,
            assumed="blocks of 128 threads with 1 KiB, over those with 48 KiB",
        ).because("An SM's shared memory is shared out among its blocks: the more each takes, the fewer fit."),
    ),
    *at(
        "Shared memory versus global memory",
        Claim(
            "shared memory's latency is 20 to 30 times lower than DRAM's",
            Latency("global memory", over="shared memory"),
            Bounds(20, 30),
        ).because("A load from DRAM crosses the chip and the L2 on its way, one from shared memory stays in its SM."),
        Claim("shared memory's bandwidth is more than 10 times DRAM's", BANDWIDTH, Bounds(10)).because(BANKS),
    ),
    *at(
        "Bank conflicts",
        Claim(
            "addresses in one bank are served one after the other, those in different banks in parallel",
            Times(_SERIAL, _PARALLEL),
        ).because("A bank serves one word per wavefront, so 32 words of one bank take 32 wavefronts."),
        Claim(
            "a single address that all lanes read is a broadcast: no slower than parallel access",
            Times(_PARALLEL, _BROADCAST),
            Bounds(0.95),
        ).because("One wavefront gives a word to every lane that asks for it."),
    ),
    *at(
        "Memory padding",
        Claim(
            "one column of padding spreads a column of the tile over all banks",
            Times(_COLUMNS, _PADDED),
            assumed="a tile of 32×32 words",
        ).because("Rows of 33 words begin in 32 different banks; the loads are 32-way conflicts without padding."),
    ),
    *at(
        "Performance of transpose kernels",
        *_transposes(
            "naiveGmem",
            "copyGmem",
            "A warp of naiveGmem stores down the output's columns: a sector of 32 bytes moves for each element, in "
            "blocks of 16×16 for two.",
        ),
        *_transposes(
            "naiveGmem",
            "transposeSmem",
            "Through the tile a warp loads and stores whole rows, and fills the sectors that it moves.",
        ),
        *_transposes(
            "transposeSmem",
            "transposeSmemPad",
            "In blocks of 32×32 padding removes 32-way conflicts of loads; in blocks of 16×16 it leaves 2-way ones of "
            "loads and stores, where loads had 8-way ones.",
        ),
        *(_rate(figure) for figure in FIGURES if figure.gb_s is not None),
    ),
    *at(
        "Constant memory",
        Claim("constant memory is for data that a warp's threads read uniformly", UNIFORM).because(
            "The constant cache serves one address per request at a time: a broadcast, or each of nine in turn."
        ),
    ),
)
