"""What a problem declares: axes, kernels' roles, inputs, reference and counts, and what its command says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import lcm
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from smembench.model.case import Block, Case
from smembench.model.clauses import Compared, Result
from smembench.model.hardware import WAVEFRONT_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]

Memory = Literal["device", "shared", "link"]
Bound = Literal["arithmetic", "memory"]

ITEMSIZE = {"float16": 2, "float32": 4, "float64": 8, "int32": 4, "int64": 8}


def pattern_period(case: Case, results: tuple[int, int] = (1, 1)) -> int:
    """Elements after which accesses along a side repeat: a multiple of the block, of two, and of 32 elements.

    A multiple as well of what a block computes when its threads compute ``results`` each, across and down.
    """
    block = case.block or Block(1, 1)
    return lcm(2 * block.x, 2 * block.y, results[0] * block.x, results[1] * block.y, 32)


def shrunk(side: int, period: int) -> int:
    """A side that leaves the same remainder: rows begin at the same places of sectors and banks."""
    return side if side <= 4 * period else 3 * period + side % period


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether an output is right, the problem's error measure (None for NaN), and what is wrong otherwise."""

    passed: bool
    error: float | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a case, in the meaning the problem gives them."""

    m: int
    n: int
    k: int | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """What a user may vary: a key of a sweep and an option of the problem's command, both of this name.

    ``default`` is what ``--help`` says of it, ``values`` what a parameter has where none are given.
    """

    name: str
    help: str
    default: str = ""
    values: tuple[int, ...] = ()


DEFAULT_BLOCKS = (Block(32, 32), Block(16, 16))
BLOCK = Axis("block", "Block dimensions in threads.", f"{','.join(map(str, DEFAULT_BLOCKS))} or the kernel's")
PAD = Axis("pad", "Of the kernels with a tile only the padded, or only the unpadded.")
PAD_WIDTH = Axis("pad_width", "Extra columns of a padded tile.", "1")


def bit_for_bit(expected: Array, output: Array) -> Verification:
    """Judge an output that must be the expected one in every bit; the error is the fraction of elements that differ."""
    import numpy as np

    bits = f"u{output.itemsize}"
    differ = output.view(bits) != expected.view(bits)
    wrong = int(np.count_nonzero(differ))
    if not wrong:
        return Verification(True, 0.0)
    detail = f"{wrong} of {output.size} elements differ, the first at index {int(np.argmax(differ))}"
    return Verification(False, wrong / output.size, detail)


class Problem(ABC):
    """What every kernel of a problem shares: they are held to the same inputs, reference and counts.

    A kernel is called as ``kernel(out, *inputs, *scalars)`` with one-dimensional, row-major arrays.
    """

    name: ClassVar[str]
    order: ClassVar[int]
    """Place in lists of problems and of commands."""
    title: ClassVar[str]
    help: ClassVar[str] = ""
    """What ``--help`` of its command says: a first line, what is measured and how it is checked, examples."""
    command: ClassVar[str] = ""
    """The problem whose command measures this one as well; it has its own when empty."""
    dtypes: ClassVar[tuple[str, ...]]
    default_n: ClassVar[int]
    default_blocks: ClassVar[tuple[Block, ...]] = DEFAULT_BLOCKS
    sizes: ClassVar[tuple[Axis, ...]]
    """The sizes a user may give; ``shapes`` says what they make."""
    parameters: ClassVar[tuple[Axis, ...]] = ()
    """Whole numbers of its own that every case has one of each, in ``Case.parameters``."""
    kernel_axes: ClassVar[tuple[Axis, ...]] = (BLOCK,)
    """What its kernels take beside the size: block, stride, pad, pad_width."""
    options: ClassVar[tuple[str, ...]] = ("kernel", "dtype", "device", "cache")
    """The options of its command that other commands have as well: those, compiler and peers."""
    ceiling_kernel: ClassVar[str | None] = None
    """The kernel that ``percent_of_copy`` compares with, if any; it is part of every run."""
    copy_kernel: ClassVar[str | None] = None
    """The documents' copy, a thread per element, if any."""
    naive_kernel: ClassVar[str | None] = None
    """The kernel that ``speedup_vs_naive`` compares with, if any."""
    cpu_kernel: ClassVar[str | None] = None
    """The CPU kernel that ``speedup_vs_cpu`` compares with, if any."""
    strided_kernel: ClassVar[str | None] = None
    """The kernel that its command measures when a stride and no kernel is given; the standard ones if None."""
    default_strides: ClassVar[tuple[int | None, ...]] = (None,)
    """Strides of strided kernels where none are given."""
    strides_in_rows: ClassVar[bool] = False
    """Whether strides are compared in one table; otherwise each has its own, like a size."""
    memory: ClassVar[Memory] = "device"
    """The memory that ``bytes_moved`` crosses, whose peak no effective bandwidth can exceed."""
    bound: ClassVar[Bound] = "memory"
    """The peak that ``percent_of_peak`` compares with: of arithmetic, or of ``memory``."""
    columns: ClassVar[tuple[str, ...]]
    """The columns of cases.csv that tables of this problem show beside the time, the rate that its bars show first."""
    arrays: ClassVar[tuple[str, ...]]
    """Names of a kernel's arrays: the output, then the inputs."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The sizes and the parameters."""
        return self.sizes + self.parameters

    @property
    def size_axes(self) -> tuple[str, ...]:
        """Names of the sizes."""
        return tuple(axis.name for axis in self.sizes)

    @abstractmethod
    def shapes(self, sizes: Mapping[str, tuple[int, ...]]) -> list[Shape]:
        """The product of the sizes given, by name.

        Raises:
            UsageError: when the sizes contradict each other.
        """

    def combinations(self, given: Mapping[str, tuple[int, ...]]) -> list[tuple[tuple[str, int], ...]]:
        """The product of the parameters given, by name, and of the usual values of those that are not."""
        values = [given.get(axis.name) or axis.values for axis in self.parameters]
        names = [axis.name for axis in self.parameters]
        return [tuple(zip(names, chosen, strict=True)) for chosen in product(*values)]

    def sizes_of(self, case: Case) -> dict[str, int]:
        """The sizes by name of which ``shapes`` makes this case's."""
        return {"n": case.n}

    def on_device(self, case: Case, multiprocessors: int | None) -> Case:
        """The case as a device of so many multiprocessors runs it, for sizes that follow from the device."""
        return case

    def unsupported(self, case: Case) -> str | None:
        """Why a case makes no sense whatever the kernel, or None."""
        return None

    def size(self, case: Case) -> str:
        """The size as tables head it: ``4096×4096``."""
        return case.size.replace("x", "×")

    def most_bytes_per_clock(self, case: Case, computes: str) -> int:
        """The most bytes per clock that a multiprocessor's shared memory can give threads: what its banks deliver."""
        return WAVEFRONT_BYTES

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """What the numbers say, as clauses of one sentence; none when there is nothing to compare.

        Args:
            results: undisturbed results of one size, at least one.
            compared: says how much faster one result is than another, if it is.
        """
        return []

    @abstractmethod
    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """Random host arrays for this case; the same for the same seed, sizes and dtype."""

    @abstractmethod
    def lengths(self, case: Case) -> tuple[int, ...]:
        """Elements of the arrays, in the order of ``arrays``."""

    def elements(self, case: Case) -> tuple[int, ...]:
        """Elements of the arrays that are used, in the order of ``arrays``: ``lengths`` without gaps between rows."""
        return self.lengths(case)

    def output_length(self, case: Case) -> int:
        """Elements of the output."""
        return self.lengths(case)[0]

    @abstractmethod
    def scalars(self, case: Case) -> tuple[int, ...]:
        """The integers a kernel takes after its arrays."""

    @abstractmethod
    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Any:
        """What ``check`` needs to judge an output of kernels that compute ``computes``; may be slow."""

    @abstractmethod
    def check(self, case: Case, reference: Any, output: Array) -> Verification:
        """Judge an output that was poisoned with 0xFF bytes before the kernel ran."""

    @abstractmethod
    def bytes_moved(self, case: Case) -> int:
        """Bytes a launch must move at the least: every input read once, every output written once."""

    @abstractmethod
    def flops(self, case: Case) -> int:
        """Floating-point operations of a launch; 0 when the problem does none."""

    def operations(self, case: Case) -> int:
        """A count proportional to the time of a launch, to predict a long run from a short one."""
        return self.flops(case) or self.bytes_moved(case)

    def pattern(self, case: Case, results: tuple[int, int] = (1, 1)) -> Case:
        """A smaller case whose blocks, with ``results`` a thread, touch memory in the same ways, for a trace."""
        period = pattern_period(case, results)
        return replace(case, m=shrunk(case.m, period), n=shrunk(case.n, period))

    def longer(self, case: Case, smaller: Case) -> tuple[Case, int]:
        """A case's ``pattern`` with one period more of the steps that threads repeat, and how many the case has more.

        A problem without such steps, or a case whose pattern has all of them, has none more.
        """
        return smaller, 0

    def input_key(self, case: Case) -> tuple[object, ...]:
        """Cases with the same key have the same inputs and references."""
        return (self.name, case.m, case.n, case.k, case.stride, case.parameters, case.dtype)

    def rng(self, case: Case, seed: int) -> np.random.Generator:
        """A generator for this case's inputs: the seed and the sizes decide the stream."""
        import numpy as np

        return np.random.default_rng([seed, case.m, case.n, case.k or 0, ITEMSIZE[case.dtype]])
