"""The base class of problems: sizes and other axes, inputs, reference and counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from smembench.model.axis import DEFAULT_BLOCKS, Axis
from smembench.model.case import BY_ROWS, UNIFORM, Block, Case
from smembench.model.hardware import WAVEFRONT_BYTES
from smembench.model.texts import Texts

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
"""Bytes of an element of the package's types."""
OTHER_ITEMSIZES = {
    "bool": 1,
    "float8_e5m2": 1,
    "complex64": 8,
    "complex128": 16,
    **{f"{kind}{bits}": bits // 8 for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
"""Bytes of an element of types that only kernels of the user's have."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Verdict on an output: its error by the problem's measure (None for NaN), and what is wrong if it failed."""

    passed: bool
    error: float | None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a case, in the problem's meaning."""

    m: int
    n: int
    k: int | None = None


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
    """Inputs, reference and counts, shared by all kernels of a problem.

    A kernel is called as ``kernel(out, *inputs, *scalars)`` with one-dimensional, row-major arrays.

    Attributes:
        texts: its command and its tables.
    """

    name: ClassVar[str]
    order: ClassVar[int]
    """Position in lists of problems and commands."""
    dtypes: ClassVar[tuple[str, ...]]
    default_n: ClassVar[int]
    default_blocks: ClassVar[tuple[Block, ...]] = DEFAULT_BLOCKS
    sizes: ClassVar[tuple[Axis, ...]]
    """The sizes that a user can give; ``shapes`` makes cases of them."""
    parameters: ClassVar[tuple[Axis, ...]] = ()
    """The problem's own integer axes; every case has a value for each in ``Case.parameters``."""
    distributions: ClassVar[tuple[str, ...]] = (UNIFORM,)
    """Distributions of the values of its inputs: ``Case.inputs``."""
    b_layouts: ClassVar[tuple[str, ...]] = (BY_ROWS,)
    """Layouts of the second matrix of a product: ``Case.b_layout``."""
    ceiling_kernel: ClassVar[str | None] = None
    """The kernel that ``percent_of_copy`` compares with, if any; every run includes it."""
    copy_kernel: ClassVar[str | None] = None
    """The kernel that ``percent_of_copygmem`` compares with, if any."""
    naive_kernel: ClassVar[str | None] = None
    """The kernel that ``speedup_vs_naive`` compares with, if any."""
    cpu_kernel: ClassVar[str | None] = None
    """The CPU kernel that ``speedup_vs_cpu`` compares with, if any."""
    default_strides: ClassVar[tuple[int | None, ...]] = (None,)
    """Default strides of strided kernels."""
    memory: ClassVar[Memory] = "device"
    """The memory that ``bytes_moved`` counts; no effective bandwidth can exceed its peak. "none" for latencies."""
    bound: ClassVar[Bound] = "memory"
    """The peak that ``percent_of_peak`` compares with: that of arithmetic or that of ``memory``."""
    uses_host: ClassVar[bool] = False
    """True if its cases use resources that a host's GPUs share, such as host memory: a fleet runs one GPU at a time."""
    arrays: ClassVar[tuple[str, ...]]
    """Names of a kernel's arrays: first the output, then the inputs."""

    checks: bool = True
    """True if results are checked; results of the user's kernels need not be."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts

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
        """The number of shapes and combinations of parameters, or an upper bound, without making any."""
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
        """The reason why no kernel can run a case, or None."""
        return None

    def most_bytes_per_clock(self, case: Case, computes: str) -> int:
        """The most shared-memory bytes per clock that the threads of a multiprocessor can receive."""
        return WAVEFRONT_BYTES

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
        """Size in bytes of each array, from its number of elements."""
        return tuple(count * ITEMSIZE[dtype] for count, dtype in zip(counts, self.array_types(case), strict=True))

    def input_name(self, number: int) -> str:
        """The name of an input, by its number among them."""
        return self.arrays[number + 1]

    def output_length(self, case: Case) -> int:
        """Elements of the output."""
        return self.lengths(case)[0]

    def scalars(self, case: Case) -> tuple[int, ...]:
        """The integers a kernel takes after its arrays; by default ``(n,)``."""
        return (case.n,)

    @abstractmethod
    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Any:
        """The result with which ``check`` compares an output of kernels that compute ``computes``; may be slow."""

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

    def input_key(self, case: Case) -> tuple[object, ...]:
        """A key that cases share if they have the same inputs and references."""
        sizes = (case.m, case.n, case.k, case.stride)
        return (self.name, *sizes, case.parameters, case.dtype, case.inputs, case.b_layout)

    def rng(self, case: Case, seed: int) -> np.random.Generator:
        """The random generator for a case's inputs, seeded by the seed, the sizes and the size of an element."""
        import numpy as np

        return np.random.default_rng([seed, case.m, case.n, case.k or 0, ITEMSIZE[case.dtype]])
