"""Kernels of CUDA C++, PTX, cubins, Triton and CuPy: machine code, launched by the driver with typed parameters."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from smembench.kernels.program import MAP_BYTES
from smembench.launches.arguments import check_count
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.cuda_file import Named
from smembench.launches.cuda_parameters import check_data, parameter_names
from smembench.launches.dimensions import PORTABLE_CLUSTER
from smembench.launches.launch import Launch
from smembench.launches.parameters import is_structure, scalar_bytes, structure_bytes, untyped
from smembench.launches.ptx_entry import TYPES, entries, entry_named
from smembench.launches.subject import Arrays, Enqueue, Subject
from smembench.launches.tensor_map_argument import TensorMapArgument
from smembench.launches.triton_launch import compiled_launch
from smembench.model.errors import UsageError
from smembench.model.measurement import Resources
from smembench.model.user_launch import UserLaunch
from smembench.toolchains import cubin
from smembench.toolchains.loaded import Loaded, Parameter
from smembench.toolchains.nvrtc import Compiled, from_ptx
from smembench.toolchains.tensor_maps import encoded_map
from smembench.toolchains.triton_function import inner


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


def _cubin(code: bytes | None) -> Any:
    from cuda.core import ObjectCode

    return ObjectCode.from_cubin(code)


def of_source(compiled: Compiled, named: Named, arguments: Sequence[Argument], capability: str) -> _Code:
    """A kernel of compiled CUDA C++, or of PTX, compiled by nvJitLink, or by the driver where that is missing."""
    from cuda.core import ObjectCode

    known = entries(compiled.ptx)
    entry = entry_named(known, compiled.names.get(named.name, named.name), named.path)
    code = compiled.code or from_ptx(compiled.ptx, capability)
    loaded = ObjectCode.from_ptx(compiled.ptx.encode()) if code is None else _cubin(code)
    parameters = known[entry]
    check_data(named.source, named.name, arguments)
    names = parameter_names(named.source, named.name, len(parameters)) or [parameter.name for parameter in parameters]
    called = [parameter._replace(name=name) for parameter, name in zip(parameters, names, strict=True)]
    return _Code(loaded, entry, called, [*enumerate(arguments)], names)


def of_cubin(target: str, arguments: Sequence[Argument]) -> _Code:
    """The kernel that ``path.cubin:name`` names.

    Raises:
        UsageError: for a file that is not found or no cubin, and without such a kernel.
    """
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


def of_triton(function: Any, launch: Launch, capability: str) -> _Code:
    """A function of ``triton.jit``, compiled for a launch; raises as ``compiled_launch``."""
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


class LaunchedCode(Subject):
    """Machine code that the driver launches."""

    def __init__(self, code: _Code, launch: UserLaunch) -> None:
        self._launch, self._shared_bytes = launch, launch.shared_bytes + code.shared_bytes
        self._block = code.block or launch.block
        if code.block and launch.block and prod(code.block) != prod(launch.block):
            raise UsageError(f"{launch.target}: has {prod(code.block)} threads, by num_warps; leave --block out")
        if not launch.grid or not self._block:
            raise UsageError(f"{launch.target}: give --grid and --block, such as --grid 128x128 --block 32x8")
        self._loaded: Loaded[Any] = Loaded(code.object_code, code.entry)
        names = [parameter.name for parameter in code.parameters]
        check_count(launch.target, names, code.arguments)
        self.names = code.names or names
        self._pairs = [*zip(code.parameters, code.arguments, strict=True)]
        hints = ((parameter.name, untyped(parameter, argument)) for parameter, (_, argument) in self._pairs)
        self.notes = [f"argument {name}: {hint}" for name, hint in hints if hint]

    def enqueue(self, stream: int, arrays: Arrays) -> Enqueue:
        """A launch by ``cuLaunchKernelEx``, which takes all attributes."""
        kept = [self._bytes(parameter, place, argument, arrays) for parameter, (place, argument) in self._pairs]
        launch = self._launch
        if launch.carveout is not None:
            self._loaded.set_attribute("PREFERRED_SHARED_MEMORY_CARVEOUT", launch.carveout)
        if prod(launch.cluster) > PORTABLE_CLUSTER:
            self._loaded.set_attribute("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", 1)
        return self._loaded.with_bytes(
            stream,
            (launch.grid, self._block, launch.cluster),
            [content for content, _ in kept],
            shared_bytes=self._shared_bytes,
            cooperative=launch.cooperative,
            keep=[memory for _, memory in kept],
        )

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
        if isinstance(argument, ArrayArgument) and parameter.bytes == 8 and not is_structure(parameter, argument):
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
        """From the driver and the machine code."""
        return self._loaded.resources()


def _map(argument: TensorMapArgument, address: int) -> Any:
    sides = argument.shape[::-1]
    strides = [argument.dtype.itemsize * prod(sides[: axis + 1]) for axis in range(len(sides) - 1)]
    return encoded_map(address, argument.dtype.itemsize, sides, strides, argument.box, argument.swizzle)
