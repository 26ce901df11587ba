"""A kernel of the user's on the current GPU: compiled or imported, and enqueued with arrays in place of its arguments.

CUDA C++, PTX, cubins, Triton's and CuPy's kernels are machine code that the driver launches, with parameters of known
sizes. Kernels of Numba are launched by Numba, and any other function of Python's enqueues its work by itself.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from smembench.launches.arguments import in_order_and_named
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.cuda_file import Named, compiled_kernel, is_cuda_file, parameter_names
from smembench.launches.launch import Launch
from smembench.launches.library_arrays import as_the_function_takes
from smembench.launches.live import is_token, value_of
from smembench.launches.parameters import scalar_bytes, structure_bytes
from smembench.launches.placed_array import PlacedArray
from smembench.launches.ptx_entry import TYPES, entries, entry_named
from smembench.launches.python_file import function_in, kernel_in
from smembench.launches.raw_kernel import compiled_source, raw_kernel
from smembench.launches.tensor_map_argument import MAP_BYTES, TensorMapArgument
from smembench.launches.triton_launch import compiled_launch
from smembench.model.errors import UsageError
from smembench.model.measurement import Resources
from smembench.model.text import number_of
from smembench.model.user_launch import UserLaunch
from smembench.toolchains import cubin
from smembench.toolchains.loaded import Loaded, Parameter
from smembench.toolchains.nvrtc import Compiled, from_ptx
from smembench.toolchains.tensor_maps import encoded_map
from smembench.toolchains.triton_function import inner, is_triton

Enqueue = Callable[[], Any]
Arrays = Mapping[int, PlacedArray]
"""Arrays on the device, by their place among the arguments."""


class Subject(ABC):
    """A kernel that can be enqueued.

    Attributes:
        names: of its arguments, in order.
        captured: whether a graph can hold it for certain.
    """

    names: Sequence[str]
    captured = True

    @abstractmethod
    def enqueue(self, stream: int, arrays: Arrays) -> Enqueue:
        """A function that enqueues a launch with these arrays; ``stream`` is a handle."""

    def resources(self) -> Resources:
        """Registers and local memory per thread, and the hash of its instructions, as far as they are known."""
        return Resources()


class _Code(NamedTuple):
    """Machine code or PTX as cuda.core has it, a kernel's name in it, and its parameters; of a cubin without types.

    ``arguments`` are those of the parameters in order, each with its place among the launch's, None for one that the
    compiler added.
    """

    object_code: Any
    entry: str
    parameters: Sequence[Parameter]
    arguments: Sequence[tuple[int | None, Argument]]
    names: Sequence[str] = ()
    shared_bytes: int = 0
    block: tuple[int, ...] = ()


def subject_of(launch: UserLaunch, capability: str) -> Subject:
    """The kernel of a launch, for the current GPU, which has this compute capability.

    Raises:
        UsageError: for a file that is not found, does not compile or lacks the kernel, and a launch that it does not
            take.
    """
    arguments, named = in_order_and_named(launch.arguments)
    path = Path(launch.target.partition(":")[0])
    if path.suffix == ".cubin":
        return _Launched(_of_cubin(launch.target, arguments), launch)
    if is_cuda_file(launch.target):
        code = _of_source(*compiled_kernel(launch.target, capability, launch.options), arguments, capability)
        return _Launched(code, launch)
    kernel = _of_python(launch.target)
    if launch.options:
        raise UsageError(f"{launch.options[0]}: goes with a kernel in a .cu file")
    if is_triton(kernel):
        whole = Launch(launch.grid, launch.block or None, arguments, named, launch.shared_bytes)
        return _Launched(_of_triton(kernel, whole, capability), launch)
    if named and launch.grid:
        raise UsageError(f"{next(iter(named))}=…: goes with Triton or a function; give the arguments in their order")
    if (raw := raw_kernel(kernel)) is not None:
        return _Launched(_of_source(*compiled_source(raw, capability), arguments, capability), launch)
    if hasattr(kernel, "py_func"):
        return _OfNumba(kernel, launch, arguments)
    return _Function(kernel, launch, arguments, named)


def _of_python(target: str) -> Any:
    """What a name in a Python file means, or what Python holds: a kernel, or else any function."""
    if is_token(target):
        return value_of(target)
    try:
        return kernel_in(target)
    except UsageError as error:
        if "has no function" not in str(error):
            raise
        return function_in(target)


def _cubin(code: bytes | None) -> Any:
    from cuda.core import ObjectCode

    return ObjectCode.from_cubin(code)


def _of_source(compiled: Compiled, named: Named, arguments: Sequence[Argument], capability: str) -> _Code:
    """A kernel of compiled CUDA C++, or of PTX, compiled by nvJitLink, or by the driver where that is missing."""
    from cuda.core import ObjectCode

    known = entries(compiled.ptx)
    entry = entry_named(known, compiled.names.get(named.name, named.name), named.path)
    code = compiled.code or from_ptx(compiled.ptx, capability)
    loaded = ObjectCode.from_ptx(compiled.ptx.encode()) if code is None else _cubin(code)
    names = parameter_names(named.source, named.name, len(known[entry]))
    return _Code(loaded, entry, known[entry], [*enumerate(arguments)], names)


def _of_cubin(target: str, arguments: Sequence[Argument]) -> _Code:
    text, _, name = target.partition(":")
    path = Path(text)
    try:
        code = path.read_bytes()
        known = [*cubin.instructions(code)]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give kernel.cubin:name") from None
    except Exception:  # pyelftools has many of its own
        raise UsageError(f"{path}: is no cubin") from None
    entry = entry_named(known, name, path)
    sizes = enumerate(cubin.parameters(code, entry))
    parameters = [
        Parameter(f"{number}", f"b{8 * size}" if size in (1, 2, 4, 8) else "b8", size) for number, size in sizes
    ]
    return _Code(_cubin(code), entry, parameters, [*enumerate(arguments)])


def _of_triton(function: Any, launch: Launch, capability: str) -> _Code:
    compiled, passed = compiled_launch(function, launch, capability)
    (entry, parameters), *_ = entries(compiled.ptx).items()
    names = inner(function).arg_names
    bound: list[tuple[int | None, Argument]] = [
        (names.index(name) if names.index(name) < len(launch.arguments) else None, value)
        for name, value in passed.items()
    ]
    if len(parameters) > len(bound):  # behind those of its source Triton has pointers to scratch memory
        scratch = ArrayArgument((compiled.scratch_bytes * prod(launch.grid),), np.dtype(np.uint8))
        bound.append((None, scratch if compiled.scratch_bytes else 0))
        bound += [(None, 0)] * (len(parameters) - len(bound))
    given = names[: len(launch.arguments)]
    code = _cubin(compiled.code)
    return _Code(code, entry, parameters, bound, given, compiled.shared_bytes, (compiled.threads,))


class _Launched(Subject):
    """Machine code that the driver launches."""

    def __init__(self, code: _Code, launch: UserLaunch) -> None:
        self._launch, self._shared_bytes = launch, launch.shared_bytes + code.shared_bytes
        self._block = code.block or launch.block
        if not launch.grid or not self._block:
            raise UsageError(f"{launch.target}: give --grid and --block, such as --grid 128x128 --block 32x8")
        self._loaded: Loaded[Any] = Loaded(code.object_code, code.entry)
        self._entry, self._object = code.entry, code.object_code
        self._parameters = code.parameters
        self._arguments = code.arguments
        self.names = code.names or [each.name for each in self._parameters]
        if len(self._arguments) != len(self._parameters):
            given = number_of(len(self._arguments), "argument")
            raise UsageError(f"{launch.target}: takes ({', '.join(self.names)}), not {given}; give one for each name")

    def enqueue(self, stream: int, arrays: Arrays) -> Enqueue:
        """A launch by ``cuLaunchKernelEx``, which takes all attributes."""
        kept = [self._bytes(each, place, argument, arrays) for each, (place, argument) in self._pairs]
        launch = self._launch
        if launch.carveout is not None:
            self._loaded.set_attribute("PREFERRED_SHARED_MEMORY_CARVEOUT", launch.carveout)
        if prod(launch.cluster) > 8:  # the most that every GPU with clusters has
            self._loaded.set_attribute("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)
        return self._loaded.with_bytes(
            stream,
            (launch.grid, self._block, launch.cluster),
            [each for each, _ in kept],
            shared_bytes=self._shared_bytes,
            cooperative=launch.cooperative,
            keep=[memory for _, memory in kept],
        )

    @property
    def _pairs(self) -> Sequence[tuple[Parameter, tuple[int | None, Argument]]]:
        return [*zip(self._parameters, self._arguments, strict=True)]

    def _bytes(
        self, parameter: Parameter, place: int | None, argument: Argument, arrays: Arrays
    ) -> tuple[bytes, object]:
        """The bytes of a parameter, and memory that has to live as long as launches."""
        from smembench.kernels.device_memory import device_array, to_device

        if isinstance(argument, TensorMapArgument) and place is not None:
            words = _map(argument, arrays[place].address)
            if parameter.bytes == MAP_BYTES:
                return words.tobytes(), None
            memory = to_device(words)
            return memory.address.to_bytes(8, "little"), memory
        if isinstance(argument, ArrayArgument) and parameter.bytes == 8:
            if place is not None:
                return arrays[place].address.to_bytes(8, "little"), None
            scratch = device_array(argument.bytes, np.uint8)
            return scratch.address.to_bytes(8, "little"), scratch
        if parameter.bytes != np.dtype(TYPES[parameter.type]).itemsize:
            return structure_bytes(parameter, argument), None
        if isinstance(argument, ArrayArgument | TensorMapArgument):
            raise UsageError(f"{parameter.name}: is no pointer but {parameter.bytes} bytes; give a number")
        return scalar_bytes(parameter, argument), None

    def resources(self) -> Resources:
        """From the driver; the hash is that of the instructions, without names and lines."""
        found = self._loaded.resources()
        code = self._object.code
        if not isinstance(code, bytes) or self._object.code_type != "cubin":
            return found
        text = cubin.instructions(code).get(self._entry, b"")
        return Resources(found.registers, found.local_bytes, sha256(text).hexdigest()[:16])


def _map(argument: TensorMapArgument, address: int) -> Any:
    sides = argument.shape[::-1]
    strides = [argument.dtype.itemsize * prod(sides[: axis + 1]) for axis in range(len(sides) - 1)]
    return encoded_map(address, argument.dtype.itemsize, sides, strides, argument.box, argument.swizzle)


class _OfNumba(Subject):
    """A kernel of Numba's, which compiles it at its first launch."""

    def __init__(self, kernel: Any, launch: UserLaunch, arguments: Sequence[Argument]) -> None:
        if launch.cluster or launch.cooperative:
            raise UsageError(f"{launch.target}: --cluster and --cooperative go with CUDA C++, PTX and cubins")
        if not launch.grid or not launch.block:
            raise UsageError(f"{launch.target}: give --grid and --block, such as --grid 128x128 --block 32x8")
        self._kernel, self._launch, self._arguments = kernel, launch, arguments
        self.names = [*inspect.signature(kernel.py_func).parameters]
        if len(arguments) != len(self.names):
            given = number_of(len(arguments), "argument")
            raise UsageError(f"{launch.target}: takes ({', '.join(self.names)}), not {given}; give one for each name")

    def enqueue(self, stream: int, arrays: Arrays) -> Enqueue:
        """A launch by Numba on this stream."""
        from smembench.kernels.numba_cuda import cuda

        taken = {place: cuda.as_cuda_array(array, sync=False) for place, array in arrays.items()}
        values = [taken.get(place, argument) for place, argument in enumerate(self._arguments)]
        queue, launch = cuda.external_stream(stream), self._launch
        configured = self._kernel[launch.grid, launch.block, queue, launch.shared_bytes]
        return lambda: configured(*values)


class _Function(Subject):
    """Any function of Python's that enqueues work."""

    captured = False

    def __init__(
        self, function: Callable[..., Any], launch: UserLaunch, arguments: Sequence[Argument], named: Mapping[str, Any]
    ) -> None:
        if launch.grid or launch.block:
            raise UsageError(
                f"{launch.target}: is a plain function, which launches by itself; leave --grid and --block out, or "
                "decorate it with cuda.jit"
            )
        self._function, self._arguments, self._named = function, arguments, dict(named)
        parameters = inspect.signature(function).parameters
        self._takes_stream = "stream" in parameters
        known = [name for name in parameters if name != "stream"]
        self.names = [*known[: len(arguments)], *(f"argument {place}" for place in range(len(known), len(arguments)))]

    def enqueue(self, stream: int, arrays: Arrays) -> Enqueue:
        """A call with the stream as ``stream``, if the function takes that, and current in PyTorch and CuPy."""
        taken, current = as_the_function_takes(self._function, stream, arrays)
        values = [taken.get(place, argument) for place, argument in enumerate(self._arguments)]
        named = {**self._named, **({"stream": stream} if self._takes_stream else {})}

        def call() -> Any:
            with current():
                return self._function(*values, **named)

        return call
