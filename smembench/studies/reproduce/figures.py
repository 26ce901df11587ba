"""The documents' figures, each with its source. They are data, not measurements by smembench."""

from __future__ import annotations

from dataclasses import dataclass

from smembench.model.case import Block

SLIDES = "Shared and Constant Memory (slides after Cheng, Grossman, McKercher, Professional CUDA C Programming)"
BLOG = "blog post on shared memory with matrix multiplication on the CPU, naive and through shared memory"


@dataclass(frozen=True, slots=True)
class Figure:
    """One time of a document: ms, and GB/s if the document gives it."""

    source: str
    device: str
    problem: str
    kernel: str
    elapsed_ms: float
    gb_s: float | None = None


# 4096 × 4096 float32 in blocks of 16 × 16, ECC off. 2·4096²·4 bytes over each time gives the GB/s of the
# table but for naiveGmem, where it gives 37.17 and 68.94: the slides must have rounded the times more than the rates.
_M2090, _K40 = "Tesla M2090", "Tesla K40"
# 1024 × 1024 float32; the GPU and the CPU are not named. The tiles are 32 × 32.
_UNNAMED = "the blog's machine"

FIGURES: tuple[Figure, ...] = (
    Figure(SLIDES, _M2090, "transpose", "copyGmem", 1.048, 128.07),
    Figure(SLIDES, _M2090, "transpose", "naiveGmem", 3.611, 37.19),
    Figure(SLIDES, _M2090, "transpose", "transposeSmem", 1.551, 86.54),
    Figure(SLIDES, _M2090, "transpose", "transposeSmemPad", 1.416, 94.79),
    Figure(SLIDES, _K40, "transpose", "copyGmem", 0.758, 177.15),
    Figure(SLIDES, _K40, "transpose", "naiveGmem", 1.947, 68.98),
    Figure(SLIDES, _K40, "transpose", "transposeSmem", 1.149, 116.82),
    Figure(SLIDES, _K40, "transpose", "transposeSmemPad", 1.102, 121.83),
    Figure(BLOG, _UNNAMED, "matmul", "cpu", 568.871),
    Figure(BLOG, _UNNAMED, "matmul", "naive", 2.42451),
    Figure(BLOG, _UNNAMED, "matmul", "tiled", 1.91292),
)

BLOCKS = {"transpose": Block(16, 16), "matmul": Block(32, 32)}
SIZES = {"transpose": 4096, "matmul": 1024}


def sweeps(device: str | None = None) -> list[dict[str, object]]:
    """The sweeps of a config that measures what the documents measured; on the default device for None."""
    where = {} if device is None else {"device": device}
    return [{"problem": problem, "n": SIZES[problem], "block": str(BLOCKS[problem]), **where} for problem in SIZES]


def devices_of(problem: str) -> tuple[str, ...]:
    """Devices the documents measured this problem on, in their order."""
    return tuple(dict.fromkeys(figure.device for figure in FIGURES if figure.problem == problem))


def figure_of(problem: str, kernel: str, device: str) -> Figure | None:
    """The documents' time for a kernel on a device."""
    return next((f for f in FIGURES if (f.problem, f.kernel, f.device) == (problem, kernel, device)), None)


def ratio(problem: str, slower: str, faster: str, device: str) -> float | None:
    """How many times as fast the documents found ``faster`` on a device."""
    slow, fast = figure_of(problem, slower, device), figure_of(problem, faster, device)
    return slow.elapsed_ms / fast.elapsed_ms if slow and fast else None
