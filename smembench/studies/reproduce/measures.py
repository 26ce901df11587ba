"""Ways to find what a device, a trace or arithmetic says to a claim of the documents: an answer with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from itertools import product
from typing import Protocol

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import ENGINES, Block, Case
from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import difference

Interval = tuple[float, float, float]
"""A value and the ends of its 95 % interval."""
_ONE: Interval = (1.0, 1.0, 1.0)


class Missing(StrEnum):
    """Reasons for a missing answer."""

    NEEDS_GPU = "needs a GPU"
    NOT_IN_RUN = "not in this run"
    NO_TIME = "no time in this run"
    NOT_MEASURED = "not measured"
    NEEDS_PROBE = "not probed"
    NEEDS_COMPILERS = "needs NVIDIA's compilers"


@dataclass(frozen=True, slots=True)
class Answer:
    """A value with its 95 % interval, which has no width if the value is counted or a property of the hardware.

    ``text`` says the value with its unit, ``beside`` its interval, or where it comes from if it was not measured.
    """

    value: float
    low: float
    high: float
    text: str
    beside: str

    @classmethod
    def measured(cls, value: float, low: float, high: float, form: Callable[[float], str], unit: str) -> Answer:
        """A value with its interval, as ``form`` writes them."""
        return cls(value, low, high, f"{form(value)}{unit}", f"{form(low)}–{form(high)}")

    @classmethod
    def exactly(cls, value: float, text: str, source: str) -> Answer:
        """A value without an interval."""
        return cls(value, value, value, text, source)


@dataclass(frozen=True, slots=True)
class Here:
    """A device of a run, for which claims are judged.

    ``latency`` are the cycles of a dependent load by memory, with their interval, if they were measured.
    """

    run: Run
    device: str
    latency: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def is_gpu(self) -> bool:
        """True if it is a GPU."""
        return self.device != "cpu"

    @property
    def info(self) -> DeviceInfo | None:
        """The device's description in run.json."""
        return self.run.description.device(self.device)


class Measure(Protocol):
    """The measurement that decides a claim."""

    def on(self, here: Here) -> Answer | Missing:
        """The answer for a device."""


@dataclass(frozen=True, slots=True)
class Pick:
    """The first case of a run with this kernel: of this block and size, if they are given, and else as by default."""

    problem: str
    kernel: str
    block: Block | None = None
    n: int | None = None

    def of(self, here: Here) -> Row | Missing:
        """The row of the case on the device; of the problem's CPU baseline, that on the CPU."""
        baseline = self.kernel == PROBLEMS[self.problem].cpu_kernel
        device = "cpu" if baseline else here.device
        for row in here.run.rows:
            if (row.problem, row.kernel, row.device) == (self.problem, self.kernel, device) and self._fits(row):
                return row
        return Missing.NOT_IN_RUN

    def _fits(self, row: Row) -> bool:
        default = ("warm", PROBLEMS[self.problem].dtypes[0], None)
        usual = (row.cache, row.dtype, row.stride) == default and row.compiler in ENGINES and row.pad in (None, 0, 1)
        return usual and self.block in (None, row.block) and self.n in (None, row.n)


@dataclass(frozen=True, slots=True)
class Times:
    """Time per byte of ``slower`` over that of ``faster``: of one problem, the ratio of the times."""

    slower: Pick
    faster: Pick

    def on(self, here: Here) -> Answer | Missing:
        """The ratio of the medians, with the interval that ``stats.differs`` has of the samples."""
        if not here.is_gpu:
            return Missing.NEEDS_GPU  # a kernel's CPU version says nothing of what the documents are about
        slower, faster = self.slower.of(here), self.faster.of(here)
        if isinstance(slower, Missing) or isinstance(faster, Missing):
            return Missing.NOT_IN_RUN
        effect = difference(here.run, faster, slower)
        if effect is None or slower.elapsed_ms is None or faster.elapsed_ms is None:
            return Missing.NO_TIME
        value = slower.elapsed_ms / faster.elapsed_ms * (faster.bytes / slower.bytes)
        low, high = (value * end / effect.ratio for end in (effect.low, effect.high))
        return Answer.measured(value, low, high, two_digits, "×")


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads per element of ``matrix``, A or B, from global memory, in an m×k by k×n product."""

    kernel: str
    block: Block
    m: int
    n: int
    k: int
    matrix: str

    def on(self, here: Here) -> Answer | Missing:
        """Counted in a trace, which needs no device."""
        try:
            count = reads(self.kernel, self.block, self.m, self.n, self.k)["AB".index(self.matrix)]
        except UsageError:
            return Missing.NEEDS_COMPILERS
        return Answer.exactly(count, f"{count:g} times", "counted in a trace")


@dataclass(frozen=True, slots=True)
class Reuse:
    """Reads of global memory by naive per read by tiled."""

    block: Block
    n: int

    def on(self, here: Here) -> Answer | Missing:
        """Counted in traces, which need no device."""
        try:
            naive, tiled = (max(reads(kernel, self.block, self.n, self.n, self.n)) for kernel in ("naive", "tiled"))
        except UsageError:
            return Missing.NEEDS_COMPILERS
        return Answer.exactly(naive / tiled, f"{naive / tiled:g} times", f"counted: {naive:g} reads become {tiled:g}")


@cache
def reads(kernel: str, block: Block, m: int, n: int, k: int) -> tuple[float, float]:
    """Reads by threads per element of A and of B."""
    from smembench.explain.analysis import explain  # imports Numba

    pad = 0 if kernel == "tiled" else None
    loads = explain(Case("matmul", kernel, "cuda:0", "float32", m, n, k, block, pad)).loads
    a, b = (sum(access.per_element for access in loads if access.array == name) for name in ("A", "B"))
    return a, b


@dataclass(frozen=True, slots=True)
class Latency:
    """Cycles of a load that depends on the one before it, or their ratio to those of another memory."""

    memory: str
    over: str = ""

    def on(self, here: Here) -> Answer | Missing:
        """From ``smembench probe``."""
        if not here.is_gpu:
            return Missing.NEEDS_GPU
        memory, over = here.latency.get(self.memory), here.latency.get(self.over) if self.over else _ONE
        if memory is None or over is None:
            return Missing.NEEDS_PROBE
        value, low, high = memory[0] / over[0], memory[1] / over[2], memory[2] / over[1]
        form, unit = (two_digits, "×") if self.over else ("{:.0f}".format, " cycles")
        return Answer.measured(value, low, high, form, unit)


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of the hardware: ``of`` a compute capability, None if it is not known."""

    of: Callable[[str], float | None]
    unit: str

    def on(self, here: Here) -> Answer | Missing:
        """The limit of the device's compute capability."""
        capability = here.info.compute_capability if here.info else None
        if not here.is_gpu:
            return Missing.NEEDS_GPU
        limit = self.of(capability) if capability else None
        if limit is None:
            return Missing.NOT_MEASURED
        return Answer.exactly(limit, f"{limit:g} {self.unit}", f"compute capability {capability}")


@dataclass(frozen=True, slots=True)
class Sum:
    """Arithmetic on figures that a document prints; one with a decimal point is the range that rounds to it."""

    formula: str
    function: Callable[..., float]
    figures: tuple[str, ...]

    def on(self, here: Here) -> Answer | Missing:
        """The same for every device."""
        value = self.function(*map(float, self.figures))
        ends = [self.function(*corner) for corner in product(*map(rounded_from, self.figures))]
        low, high = min(ends), max(ends)
        rounding = f"\n{low:.2f}–{high:.2f} by rounding" if f"{low:.2f}" != f"{high:.2f}" else ""
        return Answer(value, low, high, f"{value:.2f}".removesuffix(".00"), f"{self.formula}{rounding}")


def rounded_from(figure: str) -> tuple[float, float]:
    """The least and the greatest number that are printed as ``figure``; one without a decimal point is exact."""
    _, point, decimals = figure.partition(".")
    half = 0.5 * 10.0 ** -len(decimals) if point else 0.0
    return float(figure) - half, float(figure) + half


@dataclass(frozen=True, slots=True)
class Nothing:
    """Not measured by smembench."""

    def on(self, here: Here) -> Answer | Missing:
        """Never an answer."""
        return Missing.NOT_MEASURED


def two_digits(value: float) -> str:
    """A ratio with two decimals below 100."""
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"
