"""Programs, which a kernel's ``build`` returns for a case; the class decides who compiles and runs it.

On a GPU: a kernel in Python, in CUDA C or in Triton's language, or a library's function that enqueues work. On the CPU:
a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

MemoryKind = Literal["device", "pageable", "pinned"]
"""Where an array lies: on the device, or in host memory, page-locked or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _OnGpu:
    """Places of a case's arrays."""

    inputs: MemoryKind = "device"
    output: MemoryKind = "device"

    @property
    def on_device(self) -> bool:
        """True if all arrays are on the device. If not, only the host's clock sees the whole of the copies."""
        return self.inputs == self.output == "device"


MAP_BYTES, MAP_ALIGNMENT = 128, 64
"""Bytes of a tensor map, and to whose multiples it is aligned (CUDA driver API, "CUtensorMap")."""
MAPPED_ROW_BYTES = 128
"""Bytes of a row of a tile that a tensor map describes, at most."""


class TensorMap(NamedTuple):
    """A matrix as the Tensor Memory Accelerator copies it: tile by tile, into rows of 64 or 128 bytes, swizzled.

    Attributes:
        array: its place among the arrays of a launch, 0 for the output.
        rows, columns: of the matrix.
        stride: elements from one row to the next, 16 bytes or a multiple.
        tile_rows: rows of a tile.
        copied: whether it is of a copy of the array, with this stride, for which there is memory beside the arrays;
            the kernel makes the copy.
        row_bytes: of a tile's row, over which chunks of 16 are swizzled.
        apart: rows of the matrix from one row of a tile to the next, a power of two that divides ``rows``. From 2 on
            the map has three dimensions: along a row, and row % apart and row // apart.
    """

    array: int
    rows: int
    columns: int
    stride: int
    tile_rows: int
    copied: bool = False
    row_bytes: int = MAPPED_ROW_BYTES
    apart: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuKernel(_OnGpu):
    """A kernel to be compiled, and how it is launched.

    Arrays in host memory are copied to the device before a launch and back after it, within its time.

    Attributes:
        grid: blocks, (x, y).
        block: threads of a block, (x, y).
        cluster: blocks along x of a thread block cluster, 1 for none; what is launched is a multiple of it.
        dynamic_bytes: shared memory that a launch gives each block, beside what the kernel declares.
        variant: tells apart the kernels of one block, pad, stride and dtype between which sizes choose.
        zeroed: whether the output is filled with zeros before a launch, within its time, for kernels that add to it: a
            cudaMemsetAsync ahead of the kernel.
        constant: name of the input that is read from constant memory: the device copies it to the module's variable of
            that name before the launches of a trial. Empty for none.
        allocates: whether a launch, within its time, frees the arrays on the device that the one before it used, and
            allocates its own, by cudaFree and cudaMalloc; for arrays in host memory.
        persistent_blocks: for a persistent grid, how many blocks to launch on so many multiprocessors. Any grid
            computes all of the output then, and ``grid`` has a block per tile of it.
        tensor_maps: matrices that it copies tile by tile; their maps follow the scalars. Such a kernel is compiled
            for one architecture, whose own instructions it has, and may take all of a block's shared memory.
    """

    grid: tuple[int, int]
    block: tuple[int, int]
    cluster: int = 1
    dynamic_bytes: int = 0
    variant: str = ""
    zeroed: bool = False
    constant: str = ""
    allocates: bool = False
    persistent_blocks: Callable[[int], int] | None = None
    tensor_maps: tuple[TensorMap, ...] = ()

    def on(self, multiprocessors: int) -> Self:
        """The same with the grid to launch on a device of so many multiprocessors."""
        return (
            self if self.persistent_blocks is None else replace(self, grid=(self.persistent_blocks(multiprocessors), 1))
        )

    def architecture(self, capability: str) -> str:
        """The target of the compiler for a device of this compute capability: ``90``, or with tensor maps ``90a``."""
        return capability.replace(".", "") + "a" * bool(self.tensor_maps)


@dataclass(frozen=True, slots=True)
class NumbaKernel(GpuKernel):
    """A plain Python function in Numba's dialect: of the output, the inputs, the scalars and the tensor maps.

    Attributes:
        function: closes over block, pad, stride and dtype, never over sizes.
        launch_bounds: threads per block at most, and blocks that an SM has to hold at least; they limit a thread's
            registers.
        tile_of: for a persistent grid along x, with a block per tile: which tile of ``grid``, (x, y), the block of this
            number computes.
        parts: into how many equal parts its rows of tiles are divided, each with tiles of its own kinds.
    """

    function: Callable[..., None]
    launch_bounds: tuple[int, int] | None = field(default=None, kw_only=True)
    tile_of: Callable[[int], tuple[int, int]] | None = field(default=None, kw_only=True)
    parts: int = field(default=1, kw_only=True)


@dataclass(frozen=True, slots=True)
class CudaCKernel(GpuKernel):
    """CUDA C with an ``extern "C"`` kernel named ``entry``."""

    source: str
    entry: str


@dataclass(frozen=True, slots=True)
class TritonKernel(GpuKernel):
    """A kernel in Triton's language, called with pointers to the output and the inputs, and with the scalars.

    Its ``block`` is one-dimensional and a whole number of warps; Triton shares a tile out among them.

    Attributes:
        source: imports Triton and makes the ``triton.jit`` function.
        constants: values of its ``tl.constexpr`` parameters, which come last.
        divisible: for each scalar, whether 16 divides it; Triton compiles such cases on their own. ``variant`` tells
            them apart.
    """

    source: Callable[[], Any]
    constants: Mapping[str, int]
    divisible: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class LibraryCall(_OnGpu):
    """A function that enqueues a library's work: ``enqueue(stream, output, *inputs)``, the stream by its handle.

    It gets the arrays where they lie, and is not compiled.
    """

    enqueue: Callable[..., None]


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function for the CPU that computes the whole output: ``function(output, *inputs, *scalars)``.

    Attributes:
        compiled: what Numba compiles of it, where that is another function, which it calls.
    """

    function: Callable[..., Any]
    compiled: Callable[..., Any] | None = None


Program = NumbaKernel | CudaCKernel | TritonKernel | LibraryCall | HostFunction
