"""The declaration of a kernel: what the file of a kernel says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from smembench.kernels.program import Program
from smembench.model.case import BY_ROWS, DEFAULT_COMPILER, Block, Case
from smembench.model.errors import UsageError
from smembench.model.hardware import STATIC_SHARED_BYTES
from smembench.model.problem import ITEMSIZE

EXTRA_KERNELS = "SMEMBENCH_KERNELS"
"""The environment variable that names kernel files outside the package."""


def no_elements(case: Case) -> int:
    """The default of ``tile_elements`` and of ``dynamic_elements``."""
    return 0


def _anything(case: Case) -> str | None:
    return None


def _version(capability: str) -> tuple[int, ...]:
    return tuple(map(int, capability.split(".")))


def unbuilt(case: Case) -> Program:
    """The default of ``build``, which every kernel has to give."""
    raise UsageError(f"kernel {case.kernel}: has no build, which makes its program for a case")


@dataclass(frozen=True, slots=True)
class Kernel:
    """A variant of a problem on a kind of device.

    Attributes:
        problem: name of the problem it solves.
        name: the documents' name, as shown and as ``--kernel`` takes it.
        kind: ``cuda`` or ``cpu``.
        summary: one line for ``smembench list``.
        build: makes the program for a case; its function closes over block, pad, stride, parameters and dtype,
            never over sizes. Sizes decide ``grid``, and may choose between functions, each with a ``variant``.
        computes: which of the problem's references its output is compared with.
        overwrites: whether it may write to its inputs. Its output is then checked on the first launch alone, since
            those that are timed have other inputs.
        blocks: whether the case has block dimensions.
        results: elements of the output a thread computes, at most, across and down (x, y): a block's share divides
            that many times its threads. Of a kernel without block dimensions: those of a block.
        default_blocks: its default blocks; the problem's if empty.
        pad: None for a kernel without a tile, else whether its tile is padded.
        tile_elements: elements of the shared tile (CUDA) or of one thread's tile buffer (CPU).
        dynamic_elements: those of them in dynamic shared memory, whose bytes are the program's ``dynamic_bytes``; the
            kernel declares the others.
        dtypes: the element types that it takes; all of the problem's if empty.
        b_layouts: of a product, how B may lie in memory.
        unsupported: why a case cannot be run for another reason, or None.
        needs: the compute capability whose instructions it has: ``8.0`` for it and later ones, ``9.0a`` for 9.0 alone.
        strided: whether the case may have a stride.
        compiler: the toolchain that compiles it, as ``--compiler`` and the results name it; of a peer, its library.
        peer: whether it is another library's, measured beside those written here.
        library: whether it enqueues copies or other work of CUDA's libraries, which no compiler changes.
        standard: whether it runs unless kernels are named, or the element types for which it does; the others are asked
            for with ``--kernel``.
        ladder: what it changes against the step before, in a few words. The kernels that have one are the steps of
            ``smembench ladder``, in the order of the lesson.
        few: 0, or the most rows of a product on whose ladder it is a step.
        file: the user's file that declares it; empty for those of the package.
    """

    problem: str
    name: str
    kind: Literal["cuda", "cpu"]
    summary: str = ""
    build: Callable[[Case], Program] = unbuilt
    computes: str = ""
    overwrites: bool = False
    blocks: bool = True
    results: tuple[int, int] = (1, 1)
    default_blocks: tuple[Block, ...] = ()
    pad: bool | None = None
    tile_elements: Callable[[Case], int] = no_elements
    dynamic_elements: Callable[[Case], int] = no_elements
    dtypes: tuple[str, ...] = ()
    b_layouts: tuple[str, ...] = (BY_ROWS,)
    unsupported: Callable[[Case], str | None] = _anything
    needs: str = ""
    strided: bool = False
    standard: bool | tuple[str, ...] = True
    compiler: str = DEFAULT_COMPILER
    peer: bool = False
    library: bool = False
    ladder: str = ""
    few: int = 0
    file: str = ""

    @property
    def port(self) -> bool:
        """True if it is the same kernel by another toolchain than the default, or written for one."""
        return self.compiler != DEFAULT_COMPILER and not self.peer

    def takes(self, dtype: str) -> bool:
        """True if it takes this element type."""
        return not self.dtypes or dtype in self.dtypes

    def refusal(self, case: Case, capability: str | None = None) -> str | None:
        """The reason that a case cannot be run, on a device of this compute capability if given, or None."""
        if not self.takes(case.dtype):
            return f"{self.name} takes {' and '.join(self.dtypes)}, not {case.dtype}"
        if case.b_layout not in self.b_layouts:
            return f"{self.name} takes B by {' or '.join(self.b_layouts)}, not by {case.b_layout}"
        return self.unsupported(case) or self._too_large(case) or self._lacking(capability)

    def _too_large(self, case: Case) -> str | None:
        """The refusal of a block with too little shared memory for the arrays that the kernel declares, or None."""
        if (needed := self.static_bytes(case)) <= STATIC_SHARED_BYTES:
            return None
        return (
            f"{self.name} declares {needed} bytes of shared memory for {case.dtype}, more than the "
            f"{STATIC_SHARED_BYTES} of a block: use a smaller type or block"
        )

    def _lacking(self, capability: str | None) -> str | None:
        """The refusal of a device whose compute capability lacks the kernel's instructions, or None."""
        if not self.needs or capability is None:
            return None
        needed, alone = self.needs.removesuffix("a"), self.needs.endswith("a")
        if capability == needed or (not alone and _version(capability) > _version(needed)):
            return None
        return f"needs compute capability {needed}{'' if alone else ' or later'}; this device has {capability}"

    def shared_bytes(self, case: Case) -> int:
        """Bytes of the tile for this case."""
        elements = self.tile_elements(case)
        return elements * ITEMSIZE[case.dtype] if elements else 0  # a kernel of the user's may have any type

    def static_bytes(self, case: Case) -> int:
        """Bytes of them that the kernel declares; the launch gives the others, which are dynamic."""
        return self.shared_bytes(case) - self.dynamic_elements(case) * ITEMSIZE[case.dtype]
