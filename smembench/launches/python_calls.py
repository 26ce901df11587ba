"""Kernels of Numba's, which Numba launches, and functions of Python's that enqueue their work by themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smembench.launches.arguments import check_count
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.library_arrays import as_the_function_takes
from smembench.launches.subject import Arrays, Enqueue, Subject
from smembench.model.errors import UsageError
from smembench.model.user_launch import UserLaunch


class NumbaLaunch(Subject):
    """A kernel of Numba's, which compiles it at its first launch."""

    def __init__(self, kernel: Any, launch: UserLaunch, arguments: Sequence[Argument]) -> None:
        if launch.cluster or launch.cooperative:
            raise UsageError(f"{launch.target}: --cluster and --cooperative go with CUDA C++, PTX and cubins")
        if launch.carveout is not None:
            raise UsageError(f"{launch.target}: --carveout goes with CUDA C++, PTX, cubins and Triton")
        if not launch.grid or not launch.block:
            raise UsageError(f"{launch.target}: give --grid and --block, such as --grid 128x128 --block 32x8")
        self._kernel, self._launch, self._arguments = kernel, launch, arguments
        self.names = [*inspect.signature(kernel.py_func).parameters]
        check_count(launch.target, self.names, arguments)

    def enqueue(self, stream: int, arrays: Arrays) -> Enqueue:
        """A launch by Numba on this stream."""
        from smembench.kernels.numba_cuda import cuda
        from smembench.toolchains.nvvm import ready_context

        ready_context()
        taken = {place: cuda.as_cuda_array(array, sync=False) for place, array in arrays.items()}
        values = [taken.get(place, argument) for place, argument in enumerate(self._arguments)]
        queue, launch = cuda.external_stream(stream), self._launch
        configured = self._kernel[launch.grid, launch.block, queue, launch.shared_bytes]
        return lambda: configured(*values)


class FunctionCall(Subject):
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
        if launch.shared_bytes or launch.cluster or launch.cooperative or launch.carveout is not None:
            raise UsageError(
                f"{launch.target}: is a plain function, which launches by itself; leave --shared-bytes, --cluster, "
                "--cooperative and --carveout out"
            )
        if arrays := [name for name, value in named.items() if isinstance(value, ArrayArgument)]:
            raise UsageError(f"{arrays[0]}=…: is an array; give arrays in their order, without names")
        self._function, self._arguments, self._named = function, arguments, dict(named)
        self.parts = {}
        try:
            parameters = [*inspect.signature(function).parameters]
        except (TypeError, ValueError):  # of a function in C, such as torch.add
            parameters = []
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
