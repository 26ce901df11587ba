"""A compiled kernel of the package's with its arrays on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.devices.base import Prepared
from smembench.devices.buffers import Enqueue, Output
from smembench.devices.cuda_graph import Ahead, GraphTimer
from smembench.devices.cuda_load import GraphLoad
from smembench.devices.host_clock import HostClock
from smembench.model.measurement import Resources
from smembench.toolchains.registry import Compiled

if TYPE_CHECKING:
    from smembench.devices.base import Load, Sampler
    from smembench.model.problem import Array


@dataclass(slots=True)
class CudaPrepared(Prepared):
    """A compiled kernel with its arrays.

    The case's outputs, one for each copy of its arrays, come before those that a kernel gets in their place.
    """

    _turns: Sequence[Enqueue]
    _outputs: Sequence[Output]
    _inputs: Sequence[Sequence[Any]]
    _compiled: Compiled[Any]
    _stream: Any
    _handle: int
    _residue_ms: float
    _ahead: Ahead
    _on_device: bool
    _timer: GraphTimer | None = None

    def poison(self) -> None:
        """Fill the outputs and their guards."""
        for output in self._outputs:
            output.poison(self._handle)

    def launch(self) -> None:
        """Launch on each copy and wait; the first call compiles."""
        for enqueue in self._turns:
            enqueue()
        self._stream.sync()

    def output(self) -> Array:
        """The output on the host, after a check of all guards."""
        wanted, *_ = self.outputs()
        return wanted

    def outputs(self) -> Iterator[Array]:
        """The case's outputs, one by one on the host."""
        self._stream.sync()
        for number, output in enumerate(self._outputs):
            array = output.read()
            if number < len(self._turns):
                yield array

    def inputs(self) -> Iterator[tuple[int, Array]]:
        """The inputs of the case, and those that a kernel gets in their place, one by one on the host."""
        self._stream.sync()
        for inputs in self._inputs:
            for number, array in enumerate(inputs):
                yield number, array if isinstance(array, np.ndarray) else array.copy_to_host()

    def resources(self) -> Resources:
        """Registers and local memory per thread, if the installed libraries give them."""
        try:
            return self._compiled.resources()
        except Exception:  # each library raises its own
            return Resources()

    def sampler(self, warmup: float) -> Sampler:
        """Samples from a graph; with arrays in host memory, calls timed by the host's clock."""
        if not self._on_device:
            return HostClock(self.launch, None, warmup)
        self._ahead.enqueue()  # compiles, which a capture forbids
        self._stream.sync()
        self._timer = GraphTimer(self._handle, self._turns, self._residue_ms, self._ahead, warmup)
        return self._timer

    def load(self) -> Load | None:
        """Launches from graphs; cold ones, and those with copies, do not follow each other directly."""
        return GraphLoad(self._handle, self._turns) if self._on_device and not self._ahead.cold else None

    def close(self) -> None:
        """Release the timer's graph and the outputs."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        self._outputs = self._inputs = self._turns = ()
