"""Claims of the blog post with a number or a comparison.

The numbers in ``says`` are the document's own, as it prints them; ``SMEMBENCH_DOCUMENTS=FOLDER pytest
tests/studies/test_reproduce_documents.py`` looks each of them up in the document's text.
"""

from __future__ import annotations

from operator import truediv

from smembench.explain.occupancy import shared_memory
from smembench.model.case import Block
from smembench.model.hardware import CONSTANT_BYTES, MAX_THREADS, REGISTER_BYTES, WARP
from smembench.studies.reproduce.claim import BROADCAST, FASTER, Bounds, Claim, at, exactly, printed
from smembench.studies.reproduce.figures import BLOCKS, ratios
from smembench.studies.reproduce.measures import Latency, Limit, Nothing, Pick, Reuse, Sum, Times

_COPIED = "400 KB stay in the CPU's cache; a GPU has to get them over the link and to send them back."
_REUSE = "A tile's side is how often an element that a block has read is used from shared memory."


def _kib(capability: str, place: int) -> float | None:
    """KiB of shared memory of an SM (0), or the most that a block gets (1)."""
    limits = shared_memory(capability)
    return None if limits is None else limits[place] / 1024


def _limit(says: str, limit: Limit, documented: float, true_on: str = "") -> Claim:
    """A limit that the blog names."""
    return Claim(says, limit, exactly(documented), {"": documented}, true_on=true_on)


def _add_one(kind: str, n: int = 100_000) -> Times:
    """The CPU's loop over one kind of the GPU's add-one."""
    return Times(Pick("roundtrip", "addOne", n=n), Pick("roundtrip", f"addOne{kind}", n=n))


def _matmul(kernel: str, n: int = 1024) -> Pick:
    """A kernel of the product of n×n in the blog's blocks."""
    return Pick("matmul", kernel, None if kernel == "cpu" else BLOCKS["matmul"][0], n)


CLAIMS: tuple[Claim, ...] = (
    *at(
        "0. Basics of CUDA",
        Claim(
            "adding 1 to 100,000 numbers is inefficient on the CPU; the GPU with its copies", _add_one("Pageable")
        ).because(_COPIED),
        Claim(
            "the same with its copies from and to page-locked memory",
            _add_one("Pinned"),
            assumed="in place of the listing's pageable memory",
        ).because(_COPIED),
        Claim(
            "the same without its copies", _add_one("Device"), assumed="the array is on the GPU before and after"
        ).because("The kernel alone reads and writes the GPU's memory, or its L2 at this size."),
        Claim(
            "on the CPU it is inefficient for large datasets; the GPU with its copies",
            _add_one("Pageable", 10_000_000),
            assumed="10,000,000 numbers",
        ).because(
            "Copies from and to pageable memory take longer than the CPU's loop: the driver copies everything once "
            "more."
        ),
        Claim(
            "the same with its copies from and to page-locked memory",
            _add_one("Pinned", 10_000_000),
            assumed="10,000,000 numbers",
        ).because("40 MB do not stay in a core's cache, and page-locked copies use all of the link's bandwidth."),
        Claim(
            "100,000 numbers take 1000 blocks of 128 threads",
            Sum("int(100000 / 128) + 1", lambda numbers, threads: numbers // threads + 1, ("100000", "128")),
            exactly(1000),
        ).because("1000 blocks would be 128,000 threads; the listing's own formula gives fewer."),
        _limit("each block contains 1024 threads", Limit(lambda capability: 1, f"to {MAX_THREADS}"), 1024).because(
            "It is the most that a block can have, not what every block has."
        ),
        _limit("each warp consists of 32 threads", Limit(lambda capability: WARP, "threads"), 32).because(
            "Every NVIDIA GPU so far has warps of this size."
        ),
    ),
    *at(
        "1. Basics of CUDA Memory",
        Claim(
            "global memory has a latency of hundreds of clock cycles", Latency("global memory"), Bounds(100, 1000)
        ).because("Most of them are spent on the way through the L2 to the memory and back."),
        _limit(
            "each block is allocated shared memory of 64KB",
            Limit(lambda capability: _kib(capability, 1), "KiB"),
            64,
            true_on="compute capability 7.5",
        ).because("48 KiB without asking; up to the SM's own amount as dynamic shared memory, if the launch opts in."),
        _limit(
            "shared memory is typically 48KB per SM, less than the 64KB said above to be a block's",
            Limit(lambda capability: _kib(capability, 0), "KiB"),
            48,
            true_on="compute capability 3.5",
        ).because(
            "48 KiB is what a block gets without opting in to more; an SM has had more since compute capability 5.0."
        ),
        _limit("a register has 4 bytes", Limit(lambda capability: REGISTER_BYTES, "bytes"), 4).because(
            "A 64-bit value takes two registers."
        ),
        Claim(
            "registers are even faster than shared memory",
            Latency("shared memory", over="registers, multiply-add"),
            FASTER,
        ).because(
            "A multiply-add, with its three registers read and one written, ends long before a load from shared memory."
        ),
        _limit("constant memory is typically 64KB", Limit(lambda capability: CONSTANT_BYTES / 1024, "KiB"), 64).because(
            "It is the same on every NVIDIA GPU; the cache that serves it is smaller."
        ),
        Claim("constant memory is fast for broadcast reads", BROADCAST).because(
            "The constant cache gives one word to all lanes; global memory serves the same read from the L1."
        ),
        Claim("texture memory is efficient for 2D spatial locality", Nothing()).because(
            "No kernel here is timed through a texture; smembench lesson scope reads a matrix through one."
        ),
    ),
    *at(
        "4. Matrix Multiplication",
        Claim(
            "naive on the GPU is 240.19x times faster than the CPU's 582.865ms",
            Times(_matmul("cpu"), _matmul("naive")),
            published={"": 582.865 / 2.42381},
        ).because(
            "At n = 1024 the CPU's loop walks down B in steps of 4096 bytes, which few sets of its cache have to hold."
        ),
        Claim(
            "the same at another size",
            Times(_matmul("cpu", 1000), _matmul("naive", 1000)),
            assumed="1000×1000 in place of 1024×1024",
        ).because("Rows of 4000 bytes spread a column of B over the CPU's whole cache."),
        Claim(
            "582.865ms over 2.42381ms is 240.19",
            Sum("582.865 / 2.42381", truediv, ("582.865", "2.42381")),
            printed("240.19"),
        ).because("The quotient of the times that it prints is another."),
        Claim(
            "at 240x, a minute on the GPU is 4 hours on the CPU", Sum("240 / 60", truediv, ("240", "60")), exactly(4)
        ).because("240 minutes are 4 hours."),
    ),
    *at(
        "5.3 Reusing Data",
        Claim("in 2x2 tiles each element is reused twice", Reuse(Block(2, 2), 4), exactly(2)).because(_REUSE),
    ),
    *at(
        "5.4 Talk is Cheap",
        Claim("in 32x32 tiles each value is reused 32 times", Reuse(Block(32, 32), 1024), exactly(32)).because(_REUSE),
        Claim(
            "shared memory gives about a 1.27x speedup over naive",
            Times(_matmul("naive"), _matmul("tiled")),
            published=ratios("matmul", "naive", "tiled"),
        ).because("Caches serve most of naive's repeated reads; tiles save the requests, not only the memory's bytes."),
    ),
    *at(
        "6. Summary",
        Claim(
            "the example has a 2x speedup",
            Times(_matmul("naive"), _matmul("tiled")),
            Bounds(2),
            published=ratios("matmul", "naive", "tiled"),
        ).because("The text's own 2.42451 ms / 1.91292 ms is 1.27."),
    ),
)
