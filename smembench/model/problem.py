"""The base class of problems: sizes and other axes, inputs, reference, counts, and the texts of its command."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import lcm, prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from smembench.model.case import BY_ROWS, UNIFORM, Block, Case
from smembench.model.clauses import Compared, Result
from smembench.model.hardware import WAVEFRONT_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[Any]

Memory = Literal["device", "shared", "link", "none"]
Bound = Literal["arithmetic", "memory"]

ITEMSIZE = {
    "float8_e4m3": 1,
    "bfloat16": 2,
    "float16": 2,
    "tf32": 4,
    "float32": 4,
    "float64": 8,
    "int32": 4,
    "int64": 8,
}


def pattern_period(case: Case, results: tuple[int, int] = (1, 1)) -> int:
    """Elements along a side after which accesses repeat: a multiple of twice the block's sides and of 32.

    It is also a multiple of what a block computes if each thread computes ``results`` elements (x, y).
    """
    block = case.block or Block(1, 1)
    return lcm(2 * block.x, 2 * block.y, results[0] * block.x, results[1] * block.y, 32)


def shrunk(side: int, period: int) -> int:
    """A shorter side with the same remainder, so that rows begin at the same offsets in sectors and banks."""
    return side if side <= 4 * period else 3 * period + side % period


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether an output is right, the problem's error measure (None for NaN), and what is wrong if it is not."""

    passed: bool
    error: float | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a case, in the problem's meaning."""

    m: int
    n: int
    k: int | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """What a user can vary: the key of a sweep and the option of the problem's command have this name.

    ``default`` is the text in ``--help``, ``values`` are the default values of a parameter.
    """

    name: str
    help: str
    default: str = ""
    values: tuple[int, ...] = ()


DEFAULT_BLOCKS = (Block(32, 32), Block(16, 16))
BLOCK = Axis("block", "Block dimensions in threads.", f"{','.join(map(str, DEFAULT_BLOCKS))} or the kernel's")
PAD = Axis("pad", "Run the padded twin beside each kernel that has one, or only unpadded kernels.")
PAD_WIDTH = Axis("pad_width", "Extra columns of a padded tile.", "1")


def bit_for_bit(expected: Array, output: Array) -> Verification:
    """Check that an output has exactly the expected bits; the error is the fraction of elements that differ."""
    import numpy as np

    bits = f"u{output.itemsize}"
    differ = output.view(bits) != expected.view(bits)
    wrong = int(np.count_nonzero(differ))
    if not wrong:
        return Verification(True, 0.0)
    detail = f"{wrong} of {output.size} elements differ, the first at index {int(np.argmax(differ))}"
    return Verification(False, wrong / output.size, detail)


class Problem(ABC):
    """What all kernels of a problem share: inputs, reference and counts.

    A kernel is called as ``kernel(out, *inputs, *scalars)`` with one-dimensional, row-major arrays.
    """

    name: ClassVar[str]
    order: ClassVar[int]
    """Position in lists of problems and commands."""
    title: ClassVar[str]
    help: ClassVar[str] = ""
    """Text of its command's ``--help``: a first line, what is measured and how it is checked, examples."""
    command: ClassVar[str] = ""
    """The problem whose command measures this one too; if empty, it has its own command."""
    dtypes: ClassVar[tuple[str, ...]]
    default_n: ClassVar[int]
    default_blocks: ClassVar[tuple[Block, ...]] = DEFAULT_BLOCKS
    sizes: ClassVar[tuple[Axis, ...]]
    """The sizes that a user can give; ``shapes`` makes cases of them."""
    parameters: ClassVar[tuple[Axis, ...]] = ()
    """The problem's own integer axes; every case has a value for each in ``Case.parameters``."""
    distributions: ClassVar[tuple[str, ...]] = (UNIFORM,)
    """How the values of its inputs can be distributed: ``Case.inputs``."""
    b_layouts: ClassVar[tuple[str, ...]] = (BY_ROWS,)
    """How the second matrix of a product can lie in memory: ``Case.b_layout``."""
    kernel_axes: ClassVar[tuple[Axis, ...]] = (BLOCK,)
    """What its kernels take besides the size: block, stride, pad, pad_width."""
    options: ClassVar[tuple[str, ...]] = ("kernel", "dtype", "device", "cache")
    """Options that its command shares with other commands: these, and possibly inputs, b_layout, compiler and peers."""
    ceiling_kernel: ClassVar[str | None] = None
    """The kernel that ``percent_of_copy`` compares with, if any; every run includes it."""
    copy_kernel: ClassVar[str | None] = None
    """The kernel that ``percent_of_copygmem`` compares with, if any."""
    naive_kernel: ClassVar[str | None] = None
    """The kernel that ``speedup_vs_naive`` compares with, if any."""
    cpu_kernel: ClassVar[str | None] = None
    """The CPU kernel that ``speedup_vs_cpu`` compares with, if any."""
    strided_kernel: ClassVar[str | None] = None
    """The kernel that its command measures if a stride but no kernel is given; the standard ones if None."""
    default_strides: ClassVar[tuple[int | None, ...]] = (None,)
    """Default strides of strided kernels."""
    strides_in_rows: ClassVar[bool] = False
    """Whether one table compares all strides; otherwise each stride has its own table, like a size."""
    memory: ClassVar[Memory] = "device"
    """The memory that ``bytes_moved`` counts; no effective bandwidth can exceed its peak. "none" for latencies."""
    bound: ClassVar[Bound] = "memory"
    """The peak that ``percent_of_peak`` compares with: that of arithmetic or that of ``memory``."""
    uses_host: ClassVar[bool] = False
    """Whether its cases use what the GPUs of a host share, such as host memory: a fleet runs them one GPU at a time."""
    columns: ClassVar[tuple[str, ...]]
    """Columns of cases.csv that this problem's tables show besides the time; bars show the first."""
    arrays: ClassVar[tuple[str, ...]]
    """Names of a kernel's arrays: first the output, then the inputs."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The sizes and the parameters."""
        return self.sizes + self.parameters

    def shapes(self, sizes: Mapping[str, tuple[int, ...]]) -> Iterable[Shape]:
        """All combinations of the sizes, one after another; by default one row of ``n`` elements.

        ``sizes`` are values by name; without any they are the problem's defaults.

        Raises:
            UsageError: if the sizes contradict each other.
        """
        return [Shape(1, n) for n in sizes.get("n") or (self.default_n,)]

    def count(self, given: Mapping[str, tuple[int, ...]]) -> int:
        """How many shapes and combinations of parameters there are, or more, without making any."""
        parameters = [given.get(axis.name) or axis.values for axis in self.parameters]
        return prod(len(given.get(axis.name) or (None,)) for axis in self.sizes) * prod(map(len, parameters))

    def combinations(self, given: Mapping[str, tuple[int, ...]]) -> list[tuple[tuple[str, int], ...]]:
        """All combinations of the parameters, as name and value: the given values, or else the axis's own."""
        values = [given.get(axis.name) or axis.values for axis in self.parameters]
        names = [axis.name for axis in self.parameters]
        return [tuple(zip(names, chosen, strict=True)) for chosen in product(*values)]

    def sizes_of(self, case: Case) -> dict[str, int]:
        """The sizes by name from which ``shapes`` makes this case; the inverse of ``shapes``."""
        return {"n": case.n}

    def usual_inputs(self, dtype: str) -> str:
        """The default distribution of the inputs."""
        return UNIFORM

    def usual_b_layout(self, dtype: str) -> str:
        """The default layout of B."""
        return BY_ROWS

    def tried_on(self, case: Case) -> Case:
        """The case that a kernel has to be right on first, where a case's own inputs prove little; else the case."""
        return case

    def on_device(self, case: Case, multiprocessors: int | None) -> Case:
        """The case with sizes that depend on the device's number of multiprocessors filled in."""
        return case

    def unsupported(self, case: Case) -> str | None:
        """Why no kernel can run a case, or None."""
        return None

    def size(self, case: Case) -> str:
        """The size in the heading of a table: ``4096×4096``."""
        return case.size.replace("x", "×")

    def most_bytes_per_clock(self, case: Case, computes: str) -> int:
        """The most shared-memory bytes per clock that the threads of a multiprocessor can receive."""
        return WAVEFRONT_BYTES

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """What undisturbed results of one size show, as clauses of one sentence; none without anything to compare."""
        return []

    @abstractmethod
    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """Random host arrays for this case; the same for the same seed, sizes and dtype."""

    def lengths(self, case: Case) -> tuple[int, ...]:
        """Elements of the arrays, in the order of ``arrays``; by default n each."""
        return (case.n,) * len(self.arrays)

    def elements(self, case: Case) -> tuple[int, ...]:
        """Elements that a kernel uses, in the order of ``arrays``: ``lengths`` without gaps between rows."""
        return self.lengths(case)

    def first(self, case: Case) -> int:
        """Index of the element of each array at which what a kernel gets begins."""
        return 0

    def array_types(self, case: Case) -> tuple[str, ...]:
        """Element types of the arrays, in the order of ``arrays``."""
        return (case.dtype,) * len(self.arrays)

    def sizes_of_arrays(self, case: Case, counts: Sequence[int]) -> tuple[int, ...]:
        """Bytes of so many elements of each array."""
        return tuple(count * ITEMSIZE[dtype] for count, dtype in zip(counts, self.array_types(case), strict=True))

    def output_length(self, case: Case) -> int:
        """Elements of the output."""
        return self.lengths(case)[0]

    def scalars(self, case: Case) -> tuple[int, ...]:
        """The integers a kernel takes after its arrays; by default ``(n,)``."""
        return (case.n,)

    @abstractmethod
    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Any:
        """What ``check`` compares an output with, for kernels that compute ``computes``; may be slow."""

    def check(self, case: Case, reference: Any, output: Array) -> Verification:
        """Check an output, which was filled with 0xFF bytes before the kernel ran; by default bit for bit."""
        return bit_for_bit(reference, output)

    def bytes_moved(self, case: Case) -> int:
        """Compulsory bytes per launch: every input is read once, every output written once."""
        return sum(self.sizes_of_arrays(case, self.elements(case)))

    def flops(self, case: Case) -> int:
        """Floating-point operations per launch; 0 if there are none."""
        return 0

    def column_step(self, case: Case) -> int:
        """Bytes between elements of a column that the CPU's baseline reads one after the other; 0 if it reads none."""
        return 0

    def operations(self, case: Case) -> int:
        """A count proportional to the time of a launch, to predict a large case's time from a small one's."""
        return self.flops(case) or self.bytes_moved(case)

    def pattern(self, case: Case, results: tuple[int, int] = (1, 1)) -> Case:
        """A smaller case for a trace: its blocks access memory in the same ways, with ``results`` per thread."""
        period = pattern_period(case, results)
        return replace(case, m=shrunk(case.m, period), n=shrunk(case.n, period))

    def longer(self, case: Case, smaller: Case) -> tuple[Case, int]:
        """The case's ``pattern`` with one more period of its loop, and how many more periods the case has.

        Without a loop, or if the pattern already has all periods: the pattern itself and 0.
        """
        return smaller, 0

    def input_key(self, case: Case) -> tuple[object, ...]:
        """A key that cases share if they have the same inputs and references."""
        sizes = (case.m, case.n, case.k, case.stride)
        return (self.name, *sizes, case.parameters, case.dtype, case.inputs, case.b_layout)

    def rng(self, case: Case, seed: int) -> np.random.Generator:
        """The random generator for a case's inputs, seeded by the seed, the sizes and the size of an element."""
        import numpy as np

        return np.random.default_rng([seed, case.m, case.n, case.k or 0, ITEMSIZE[case.dtype]])
