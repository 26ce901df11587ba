"""The times in the documents' tables, each with its source. They are data, not measurements by smembench."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from smembench.model.case import Block


class Document(StrEnum):
    """A document, by its title."""

    SLIDES = "Shared and Constant Memory (slides after Cheng, Grossman, McKercher, Professional CUDA C Programming)"
    GUIDE = "CUDA C++ Programming Guide, Shared Memory and Page-Locked Host Memory"
    BLOG = "blog post on shared memory with a matrix product on the CPU, naive and through shared memory"


@dataclass(frozen=True, slots=True)
class Figure:
    """A time of a document: ms, and GB/s if the document gives it."""

    source: Document
    device: str
    problem: str
    kernel: str
    elapsed_ms: float
    gb_s: float | None = None


M2090, K40 = "Tesla M2090", "Tesla K40"
# The blog names neither its GPU nor its CPU. The tiles are 32 × 32.
UNNAMED = "the blog's machine"

FIGURES: tuple[Figure, ...] = (
    Figure(Document.SLIDES, M2090, "transpose", "copyGmem", 1.048, 128.07),
    Figure(Document.SLIDES, M2090, "transpose", "naiveGmem", 3.611, 37.19),
    Figure(Document.SLIDES, M2090, "transpose", "transposeSmem", 1.551, 86.54),
    Figure(Document.SLIDES, M2090, "transpose", "transposeSmemPad", 1.416, 94.79),
    Figure(Document.SLIDES, K40, "transpose", "copyGmem", 0.758, 177.15),
    Figure(Document.SLIDES, K40, "transpose", "naiveGmem", 1.947, 68.98),
    Figure(Document.SLIDES, K40, "transpose", "transposeSmem", 1.149, 116.82),
    Figure(Document.SLIDES, K40, "transpose", "transposeSmemPad", 1.102, 121.83),
    Figure(Document.BLOG, UNNAMED, "matmul", "cpu", 568.871),
    Figure(Document.BLOG, UNNAMED, "matmul", "naive", 2.42451),
    Figure(Document.BLOG, UNNAMED, "matmul", "tiled", 1.91292),
)

SIZES = {"transpose": 4096, "matmul": 1024}
BLOCKS = {"transpose": (Block(16, 16), Block(32, 32)), "matmul": (Block(32, 32), Block(16, 16))}
"""The blocks to measure in. The slides name none; the blog has 32 × 32, the programming guide 16 × 16."""

ASSUMED = {
    "transpose": "The slides name neither size nor block. 4096×4096 float32 is inferred: 2·4096²·4 bytes in 1.048 ms "
    "are their 128.07 GB/s. The block cannot be inferred. Their K40 is also a K40C. ECC was off on both devices",
    "matmul": "The blog names neither its CPU nor its GPU",
}
"""Assumptions that the documents leave open, by problem."""


def transpose_gb_s(elapsed_ms: float) -> float:
    """Bandwidth in GB/s of a transpose of the documents' size: 2·4096²·4 bytes over the time."""
    return 2 * SIZES["transpose"] ** 2 * 4 / elapsed_ms / 1e6


def devices_of(problem: str) -> tuple[str, ...]:
    """Devices the documents measured this problem on, in their order."""
    return tuple(dict.fromkeys(figure.device for figure in FIGURES if figure.problem == problem))


def figure_of(problem: str, kernel: str, device: str) -> Figure | None:
    """The documents' time for a kernel on a device."""
    return next((f for f in FIGURES if (f.problem, f.kernel, f.device) == (problem, kernel, device)), None)


def ratio(problem: str, slower: str, faster: str, device: str) -> float | None:
    """Speed-up of ``faster`` over ``slower`` on a device, as the documents measured it."""
    slow, fast = figure_of(problem, slower, device), figure_of(problem, faster, device)
    return slow.elapsed_ms / fast.elapsed_ms if slow and fast else None


def ratios(problem: str, slower: str, faster: str) -> dict[str, float]:
    """The same on each of the documents' devices, in the order of the documents' columns."""
    by_device = {device: ratio(problem, slower, faster, device) for device in devices_of(problem)}
    return {device: value for device, value in by_device.items() if value is not None}
