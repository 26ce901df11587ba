"""The programming guide's variables in device memory, which the host fills and reads: its listing, step by step.

cudaMemcpyToSymbol, cudaMemcpyFromSymbol, cudaGetSymbolAddress and cudaGetSymbolSize know the symbols of a host program
that nvcc compiled. Here NVRTC compiles the listing's variables, and the driver finds them by name. They are in CUDA C,
because Numba declares none.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.devices.buffers import new_stream
from smembench.kernels.device_memory import to_device
from smembench.kernels.program import CudaCKernel
from smembench.studies.lesson.experiment import Experiment, Lesson, Observation
from smembench.toolchains import cubin, nvrtc
from smembench.toolchains.loaded import Loaded, pointer
from smembench.toolchains.registry import Refused
from smembench.toolchains.symbols import copy_from_symbol, copy_to_symbol, symbol

if TYPE_CHECKING:
    from smembench.model.problem import Array

_COUNT = 256
PROGRAM = CudaCKernel(
    source="""
__constant__ float constData[256];
__device__ float devData;
__device__ float *devPointer;

extern "C" __global__ void readSymbols()
{
    devPointer[threadIdx.x] = constData[threadIdx.x] * devData;
}
""",
    entry="readSymbols",
    grid=(1, 1),
    block=(_COUNT, 1),
)
SIZES = {"constData": 4 * _COUNT, "devData": 4, "devPointer": 8}
"""Bytes of the variables: 256 floats, a float and an address."""


class Listing:
    """The listing, compiled for the current GPU, with the values that it copies."""

    def __init__(self) -> None:
        self.stream: Any = new_stream()
        self.handle = int(self.stream.handle)
        major, minor = self.stream.device.compute_capability
        self.code: Any = nvrtc.compiled(PROGRAM, f"{major}.{minor}")
        self.pointed: Any = to_device(np.zeros(_COUNT, np.float32))
        self.values: dict[str, Array] = {
            "constData": np.random.default_rng(0).random(_COUNT, np.float32),
            "devData": np.array([3.14], np.float32),
            "devPointer": np.array(pointer(self.pointed), np.uint64),
        }

    def fill(self, name: str) -> None:
        """Copy its value to a variable."""
        copy_to_symbol(self.code.handle, name, self.values[name], self.handle)
        self.stream.sync()

    def read(self, name: str) -> Array:
        """Read the contents of a variable."""
        back = np.zeros_like(self.values[name])
        copy_from_symbol(self.code.handle, name, back, self.handle)
        self.stream.sync()
        return back


def _copied(name: str, runs: int) -> Observation:
    """Address and size of a variable, and whether it holds what is copied to it."""
    listing = Listing()
    address, size = symbol(listing.code.handle, name)
    listing.fill(name)
    back, values = listing.read(name), listing.values[name]
    same = int(np.count_nonzero(back == values))
    text = f"{size} bytes at {address:#x}, {same} of {len(values)} the same"
    return Observation(text, (size, same) == (SIZES[name], len(values)))


def _read_by_a_kernel(runs: int) -> Observation:
    """Check that a kernel reads all three variables as filled."""
    listing = Listing()
    for name in SIZES:
        listing.fill(name)
    loaded: Loaded[CudaCKernel] = Loaded(listing.code, PROGRAM.entry)
    loaded.launcher(PROGRAM, listing.handle, [])()
    listing.stream.sync()
    product = listing.values["constData"] * listing.values["devData"]
    right = int(np.count_nonzero(listing.pointed.copy_to_host() == product))
    return Observation(f"{right} of {_COUNT} right", right == _COUNT)


def _compiled(runs: int) -> Observation:
    """The variables' sizes in the object file."""
    if reason := nvrtc.TOOLCHAIN.unavailable():
        raise Refused(f"needs NVRTC: {reason}")
    sizes = cubin.variables(bytes(nvrtc.compiled(PROGRAM, "9.0").code))
    return Observation(_bytes(sizes), sizes == SIZES)


def _bytes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} {sizes[name]}" for name in sorted(sizes)) + " bytes"


def _copy(name: str, count: int) -> Experiment:
    expected = f"{SIZES[name]} bytes, {count} of {count} the same"
    return Experiment(f"{name}, copied to and from", expected, partial(_copied, name), needs="gpu")


LESSON = Lesson(
    document="CUDA programming guide, global variables through the runtime API",
    experiments=(
        Experiment("the variables in the machine code", _bytes(SIZES), _compiled, needs="nothing"),
        _copy("constData", _COUNT),
        _copy("devData", 1),
        _copy("devPointer", 1),
        Experiment("a kernel reads all three", f"{_COUNT} of {_COUNT} right", _read_by_a_kernel, needs="gpu"),
    ),
    why=(
        "A symbol is the name of a variable in the GPU's memory, whose address and size the driver knows; a pointer "
        "among them holds the address of memory that the host has allocated."
    ),
    check="copies are compared with what was copied, sizes with those of the C types, products with the host's",
)
