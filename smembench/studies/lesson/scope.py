"""Scope and lifetime of variables, and the order of blocks that a kernel may rely on.

Shared memory at file scope, textures and the slides' setRowReadColDyn are in CUDA C, compiled by NVRTC,
because Numba has neither the first nor textures.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from smembench.explain.occupancy import occupancy
from smembench.kernels.numba_cuda import SIMULATED, cuda
from smembench.kernels.program import CudaCKernel
from smembench.kernels.types import Array
from smembench.studies.lesson.experiment import Experiment, Lesson, Observation, launcher
from smembench.studies.lesson.symbols import PROGRAM, Listing
from smembench.toolchains import nvrtc
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.registry import Refused

SOURCE = """
__shared__ int ofTheBlock;

// Each thread reads what the first one of its block has written.
extern "C" __global__ void share(int *out)
{
    if (threadIdx.x == 0)
        ofTheBlock = blockIdx.x;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = ofTheBlock;
}

extern "C" __global__ void setRowReadColDyn(int *out)
{
    // dynamic shared memory
    extern __shared__ int tile[];

    // mapping from thread index to global memory index
    unsigned int row_idx = threadIdx.y * blockDim.x + threadIdx.x;
    unsigned int col_idx = threadIdx.x * blockDim.y + threadIdx.y;

    // shared memory store operation
    tile[row_idx] = row_idx;

    // wait for all threads to complete
    __syncthreads();

    // shared memory load operation
    out[row_idx] = tile[col_idx];
}

// A row of a matrix and a texel on either side of it.
extern "C" __global__ void readTexture(float *out, cudaTextureObject_t from)
{
    const int column = threadIdx.x, row = blockIdx.x;
    out[row * blockDim.x + column] = tex2D<float>(from, column - 0.5f, row + 0.5f);
}
"""
_SIDE, _THREADS = 32, 128
_BLOCKS = 8 if SIMULATED else 4096
KIB = (1, 16, 48)
_CAPABILITY = "9.0"


def _launched(entry: str, grid: int, block: tuple[int, int], out: Any, *scalars: Any, dynamic_bytes: int = 0) -> Array:
    """The output of a kernel of the source, on the current GPU."""
    listing = Listing()
    program = CudaCKernel(SOURCE, entry, grid=(grid, 1), block=block, dynamic_bytes=dynamic_bytes)
    major, minor = listing.stream.device.compute_capability
    loaded: Loaded[CudaCKernel] = Loaded(nvrtc.compiled(program, f"{major}.{minor}"), entry)
    loaded.launcher(program, listing.handle, scalars)(out)
    listing.stream.sync()
    values: Array = out.copy_to_host()
    return values


def _right(values: Any, expected: Any) -> Observation:
    right = int(np.count_nonzero(values == expected))
    return Observation(f"{right} of {values.size} right", right == values.size)


def _file_scope(runs: int) -> Observation:
    """Check that every block has its own copy."""
    from smembench.kernels.device_memory import device_array

    values = _launched("share", _BLOCKS, (_THREADS, 1), device_array(_BLOCKS * _THREADS, np.int32))
    return _right(values, np.repeat(np.arange(_BLOCKS), _THREADS))


def _set_row_read_col(runs: int) -> Observation:
    """The slides' listing with its launch."""
    from smembench.kernels.device_memory import device_array

    words = _SIDE * _SIDE
    out = device_array(words, np.int32)
    values = _launched("setRowReadColDyn", 1, (_SIDE, _SIDE), out, dynamic_bytes=4 * words)
    return _right(values, np.arange(words).reshape(_SIDE, _SIDE).T.ravel())


def _conflicts(runs: int) -> Observation:
    """The conflicts of the same, in a trace."""
    from smembench.explain.any_kernel import explain_any
    from smembench.launches.arguments import in_order_and_named
    from smembench.launches.launch import Launch
    from smembench.launches.raw_kernel import RawKernel
    from smembench.launches.sizes import argument

    if reason := nvrtc.TOOLCHAIN.unavailable():
        raise Refused(f"needs NVRTC: {reason}")
    words = _SIDE * _SIDE
    arguments, named = in_order_and_named([argument(f"int32[{words}]", {})])
    launch = Launch((1,), (_SIDE, _SIDE), arguments, named, 4 * words)
    costs = explain_any(RawKernel(SOURCE, "setRowReadColDyn", ()), launch, capability=_CAPABILITY)
    store, load = costs.worst("store"), costs.worst("load")
    return Observation(f"stores {store:g}-way, loads {load:g}-way", (store, load) == (1, _SIDE))


def _texture(runs: int) -> Observation:
    """A matrix through a texture, with what lies beside its rows."""
    from cuda.bindings import driver

    from smembench.kernels.device_memory import device_array, to_device
    from smembench.kernels.driver import checked

    listing = Listing()  # makes the GPU's context current
    matrix = np.random.default_rng(0).random((_SIDE, _SIDE), np.float32)
    placed = to_device(matrix.ravel())
    resource, texture = driver.CUDA_RESOURCE_DESC(), driver.CUDA_TEXTURE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    plane = resource.res.pitch2D
    plane.devPtr, plane.format, plane.numChannels = placed.address, driver.CUarray_format.CU_AD_FORMAT_FLOAT, 1
    plane.width = plane.height = _SIDE
    plane.pitchInBytes = matrix.strides[0]
    texture.addressMode = [driver.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3
    made = checked(driver.cuTexObjectCreate(resource, texture, None))
    out = device_array(_SIDE * (_SIDE + 2), np.float32)
    values = _launched("readTexture", _SIDE, (_SIDE + 2, 1), out, np.uint64(int(made)))
    checked(driver.cuTexObjectDestroy(made))
    listing.stream.sync()
    return _right(values, np.pad(matrix, ((0, 0), (1, 1)), mode="edge").ravel())


def _constants(runs: int) -> Observation:
    """Two launches find what was filled once, and a third what was filled then."""
    listing = Listing()
    for name in listing.values:
        listing.fill(name)
    loaded: Loaded[CudaCKernel] = Loaded(listing.code, PROGRAM.entry)
    launch, right = loaded.launcher(PROGRAM, listing.handle, []), 0
    for filled in (False, False, True):
        if filled:
            listing.values["constData"] = listing.values["constData"][::-1].copy()
            listing.fill("constData")
        listing.pointed.copy_from_host(np.zeros(listing.pointed.size, np.float32))
        launch()
        listing.stream.sync()
        product = listing.values["constData"] * listing.values["devData"]
        right += int(np.count_nonzero(listing.pointed.copy_to_host() == product))
    count = 3 * listing.pointed.size
    return Observation(f"{right} of {count} right", right == count)


def neighbours(out: Array, memory: Array) -> None:
    """Each thread reads from global memory what its neighbour has written before the barrier."""
    first = cuda.blockIdx.x * _THREADS
    t = cuda.threadIdx.x
    memory[first + t] = first + t
    cuda.syncthreads()
    out[first + t] = memory[first + (t + 1) % _THREADS]


def tickets(out: Array, counter: Array) -> None:
    """Each block takes the next ticket."""
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x] = cuda.atomic.add(counter, 0, 1)


def _visible(runs: int) -> Observation:
    places = np.arange(_BLOCKS * _THREADS).reshape(_BLOCKS, _THREADS)
    out, memory = (np.full(places.size, -1, np.int32) for _ in range(2))
    launcher(neighbours, _BLOCKS, _THREADS)(out, memory)
    return _right(out, np.roll(places, -1, axis=1).ravel())


def _any_order(runs: int) -> Observation:
    out, counter = np.full(_BLOCKS, -1, np.int32), np.zeros(1, np.int32)
    launcher(tickets, _BLOCKS, 32)(out, counter)
    numbers = np.arange(_BLOCKS)
    moved = int(np.count_nonzero(out != numbers))
    return Observation(f"each once, {moved} out of turn", np.array_equal(np.sort(out), numbers))


def resident(capability: str = _CAPABILITY) -> list[int]:
    """Blocks that an SM holds, by the shared memory of each."""
    return [occupancy(capability, _THREADS, 1024 * kib, None).blocks for kib in KIB]


def _resident(runs: int) -> Observation:
    counts = resident()
    return Observation(", ".join(map(str, counts)), counts == sorted(counts, reverse=True) and counts[0] > counts[-1])


def _resident_here(runs: int) -> Observation:
    """The driver's count beside the package's."""
    from cuda.bindings import driver

    from smembench.kernels.driver import checked

    listing = Listing()
    major, minor = listing.stream.device.compute_capability
    program = CudaCKernel(SOURCE, "setRowReadColDyn", grid=(1, 1), block=(_THREADS, 1))
    loaded: Loaded[CudaCKernel] = Loaded(nvrtc.compiled(program, f"{major}.{minor}"), program.entry)
    count = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
    loaded.set_attribute("PREFERRED_SHARED_MEMORY_CARVEOUT", 100)
    counts = [int(checked(count(loaded.function(0), _THREADS, 1024 * kib))) for kib in KIB]
    return Observation(", ".join(map(str, counts)), counts == resident(f"{major}.{minor}"))


_SIZES = f"blocks of {_THREADS} threads with {', '.join(map(str, KIB))} KiB of shared memory each, per SM"
_ALL = "all right"
_gpu = partial(Experiment, needs="gpu")

LESSON = Lesson(
    document="slides and blog, memory spaces, thread blocks and dynamic shared memory",
    experiments=(
        _gpu("shared memory at file scope: each block has its own", _ALL, _file_scope),
        Experiment(_SIZES, "16, 13, 4 with compute capability 9.0", _resident, needs="nothing"),
        _gpu("the same by this GPU's driver", "as computed", _resident_here),
        _gpu("setRowReadColDyn as written, 32×32", _ALL, _set_row_read_col),
        Experiment("its bank conflicts", "stores 1-way, loads 32-way", _conflicts, needs="nothing"),
        _gpu("constants: filled once, read by two launches, filled anew", _ALL, _constants),
        _gpu("a texture, and what it gives beside the matrix: its edge", _ALL, _texture),
        Experiment("global memory behind __syncthreads, within a block", _ALL, _visible),
        Experiment("blocks take tickets: in any order, each once", "each once", _any_order),
    ),
    why=(
        "Shared memory is a block's and ends with it, wherever it is declared, and the more a block takes the fewer "
        "an SM holds; constants outlive launches; a barrier orders what a block's threads see, and nothing orders "
        "blocks."
    ),
    check="every element is compared with the host's; blocks per multiprocessor with the driver's count",
)
