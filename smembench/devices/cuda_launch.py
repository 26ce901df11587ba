"""A launch of the user's on a GPU: its arrays between guards, what each launch finds and what it writes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from smembench.devices.allocation import Allocation
from smembench.devices.base import GUARD_BYTES, POISON, Load, Prepared, Sampler
from smembench.devices.buffers import BufferPool
from smembench.devices.cuda_events import EventTimer
from smembench.devices.cuda_graph import Ahead, GraphTimer, nothing
from smembench.devices.cuda_graph_parts import described
from smembench.devices.cuda_load import GraphLoad
from smembench.kernels.device_memory import DeviceArray
from smembench.kernels.driver import copy
from smembench.launches.arguments import typed_number
from smembench.launches.contract import Contract
from smembench.launches.subject import Enqueue, Subject
from smembench.model.errors import UsageError
from smembench.model.measurement import Resources
from smembench.model.text import one_line

if TYPE_CHECKING:
    from smembench.model.problem import Array

_OTHER_POISON = 0x00
"""A second byte to fill outputs with: zeros, to which sums add up, while those with NaN or -1 do not."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Parameters of timing on a GPU.

    Attributes:
        stream, handle: a stream and its handle.
        residue_ms: reading of an empty event pair.
        ahead: work ahead of each launch, outside its time.
        busy: enqueues a kernel that keeps the GPU busy for a number of seconds.
    """

    stream: Any
    handle: int
    residue_ms: float
    ahead: Ahead
    busy: Callable[[float], Any]


class LaunchPrepared(Prepared):
    """A launch of the user's, with its arrays on the device; see ``devices.base.Prepared``.

    Raises:
        UsageError: for arguments that are none of the kernel's arrays, and where it does not follow from two launches
            on poisoned arrays which of them are outputs.
    """

    def __init__(
        self,
        subject: Subject,
        contract: Contract,
        contents: Sequence[Array],
        pool: BufferPool,
        timing: Timing,
        copies: int = 1,
    ) -> None:
        self._subject, self._contract, self._timing = subject, contract, timing
        self._timer: GraphTimer | EventTimer | None = None
        self._notes: list[str] = []
        self._copies: list[dict[int, Allocation]] = [{} for _ in range(copies)]
        for slot, ((place, argument), content) in enumerate(zip(contract.placed.items(), contents, strict=True)):
            memory = pool.take(slot, argument.bytes + 2 * GUARD_BYTES, np.uint8, copies)
            for arrays, whole in zip(self._copies, memory, strict=True):
                arrays[place] = Allocation(whole, argument, content)
        self._arrays, launch = self._copies[0], contract.launch
        self._restored = {place: self._arrays[place].content for place in map(self._place, launch.restored)}
        contract.filled = self._filled(launch.resets)
        if both := self._restored.keys() & contract.filled.keys():
            raise UsageError(f"argument {both.pop()}: --inout restores it, and --reset fills it; give one of them")
        self._restored |= contract.filled
        self._scratch = contract.scratch = {*map(self._place, launch.scratch)}
        self._place_all((), POISON)
        placed = [{place: array.placed for place, array in arrays.items()} for arrays in self._copies]
        self._turns = [subject.enqueue(timing.handle, arrays) for arrays in placed]
        self._written = {*map(self._place, launch.outputs), *self._restored} - self._scratch
        if both := self._scratch.intersection(map(self._place, launch.outputs)):
            raise UsageError(f"argument {both.pop()}: is checked with --out, and not with --scratch; give one of them")
        if not launch.outputs:
            self._written |= self._detected_outputs()
        self._poison = POISON
        self._saved: Mapping[int, DeviceArray] = {
            place: self._arrays[place].saved(content) for place, content in self._restored.items()
        }

    def _place(self, name: str) -> int:
        """The place of an array among the arguments, by its number or by the kernel's name for it."""
        names = [*self._subject.names]
        place = int(name) if name.isdecimal() else names.index(name) if name in names else -1
        if place not in self._arrays:
            known = ", ".join(f"{place} ({names[place]})" for place in self._arrays if place < len(names))
            raise UsageError(f"argument {name!r}: is no array of the kernel; it has {known or 'none'}")
        return place

    def _filled(self, resets: Iterable[tuple[str, str]]) -> dict[int, Array]:
        filled: dict[int, Array] = {}
        for name, value in resets:
            place = self._place(name)
            argument = self._arrays[place].argument
            if place in filled:
                raise UsageError(f"--reset {name}={value}: argument {place} has a --reset already; give one of them")
            try:
                filled[place] = np.full(argument.shape, typed_number(argument.dtype, value), argument.dtype)
            except (TypeError, ValueError, OverflowError):
                raise UsageError(f"--reset {place}={value}: is no {argument.dtype}") from None
        return filled

    def _detected_outputs(self) -> set[int]:
        """The further arrays that a launch writes and does not read: two launches on different poison agree on them.

        Each byte of an output is written alike by both, or by neither and is then still poison.

        Raises:
            UsageError: for an array whose new content depends on the old.
        """
        written = self._changed()
        if any(array.argument.data is not None for array in self._arrays.values()):
            written |= self._changed(moved=True)  # what was given may be the kernel's results already
        results = []
        for byte in (POISON, _OTHER_POISON) if written else ():
            self._place_all(written | self._scratch - self._restored.keys(), byte)
            self._run()
            results.append({place: self._arrays[place].bytes_on_host() for place in written})
        for place in written:
            first, second = results
            alike = first[place] == second[place]
            untouched = (first[place] == POISON) & (second[place] == _OTHER_POISON)
            if not (alike | untouched).all():
                raise UsageError(
                    f"argument {place} ({self._name(place)}) is written, and what is written depends on what it held "
                    f"or differs from launch to launch: declare it with --out {place}, --inout {place}, "
                    f"--reset {place}=0, or --scratch {place} if it is only worked in"
                )
        if not written and not self._written and self._arrays:
            raise UsageError("the kernel changed none of its arrays: name its outputs with --out")
        return written

    def _changed(self, *, moved: bool = False) -> set[int]:
        """The arrays that a launch changes, besides those that are restored; ``moved`` moves the numbers in the others.

        Integers stay where they are, because they may be indices.
        """
        self._place_all((), POISON)
        kept = self._restored.keys() | self._scratch
        others = {place: array for place, array in self._arrays.items() if place not in kept}
        for place, array in others.items():
            if moved and array.content.dtype.kind not in "biu":
                array.place(self._timing.handle, np.roll(array.content, place + 1))
        before = {place: array.bytes_on_host() for place, array in others.items()}
        self._run()
        return {place for place, array in others.items() if not np.array_equal(before[place], array.bytes_on_host())}

    def _name(self, place: int) -> str:
        return self._subject.names[place] if place < len(self._subject.names) else "?"

    def _run(self) -> None:
        self._timing.stream.sync()
        for enqueue in self._turns:
            enqueue()
        self._timing.stream.sync()

    def poison(self) -> None:
        """Fill outputs and guards; place what the others hold.

        From the second time on outputs are filled with another byte: a result that is one poison is not the other.
        Guards of arrays that may be written have the byte that outputs do not: at first not that of the inputs' guards,
        so that a copy from guard to guard shows.
        """
        guard = POISON if self._poison == _OTHER_POISON else _OTHER_POISON
        self._place_all((self._written | self._scratch) - self._restored.keys(), self._poison, guard)
        self._poison = _OTHER_POISON

    def _place_all(self, poisoned: Collection[int], byte: int, guard: int = POISON) -> None:
        for place, array in (item for arrays in self._copies for item in arrays.items()):
            if place in poisoned:
                array.poison(self._timing.handle, byte, guard)
            elif place in self._restored:
                array.place(self._timing.handle, self._restored[place], guard)
            else:
                array.place(self._timing.handle, array.content)

    def restore(self) -> None:
        """Enqueue what each launch has to find in the arrays that it reads and writes."""
        for place, saved in self._saved.items():
            copy(self._timing.handle, self._arrays[place].memory, saved)

    def launch(self) -> None:
        """Launch on each copy and wait."""
        self.restore()
        self._run()

    def output(self) -> Any:
        """The arrays that are written, by their place.

        Raises:
            OutOfBounds: if the kernel wrote to a guard of any array.
        """
        return next(self.outputs())

    def outputs(self) -> Iterator[Any]:
        """The arrays that are written, by their place, of each copy."""
        self._timing.stream.sync()
        for arrays in self._copies:
            every = {place: array.read(f"argument {place}") for place, array in arrays.items()}
            yield {place: every[place] for place in sorted(self._written)}

    def inputs(self) -> Iterator[tuple[int, Array]]:
        """The arrays that are only read, by their number among all arrays."""
        self._timing.stream.sync()
        for number, (place, array) in (item for arrays in self._copies for item in enumerate(arrays.items())):
            if place not in self._written | self._scratch:
                yield number, array.read(f"argument {place}")

    def resources(self) -> Resources:
        """Registers, local memory and hash, if the installed libraries give them."""
        try:
            return self._subject.resources()
        except Exception:  # each library raises its own
            return Resources()

    def sampler(self, warmup: float) -> Sampler:
        """Samples from a graph."""
        timing = self._timing
        timing.ahead.enqueue()  # compiles, which a capture forbids
        timing.stream.sync()
        restore = self.restore if self._saved else nothing

        def before() -> None:
            restore()
            timing.ahead.enqueue()

        try:
            self._timer = GraphTimer(timing.handle, self._turns, timing.residue_ms, timing.ahead, warmup, restore)
        except Exception as error:
            if self._subject.captured:
                raise
            self._notes.append(f"timed by events, because no graph can capture it: {one_line(error)}")
            turns = cycle(self._turns)
            self._timer = EventTimer(timing.handle, lambda: next(turns)(), before, timing.busy, warmup)
        if not self._subject.captured:
            if isinstance(self._timer, GraphTimer) and len(self._turns) == 1:
                self._divide(before)
            self.poison()  # a function that enqueues on another stream has worked while it was captured: no sample does
        return self._timer

    def load(self) -> Load | None:
        """Launches from graphs, if a graph is sure to capture them, and nothing is flushed or restored before each."""
        apart = self._timing.ahead.cold or self._saved or not self._subject.captured
        return None if apart else GraphLoad(self._timing.handle, self._turns)

    def _divide(self, before: Enqueue) -> None:
        """Note of which kernels a function consists, once for all rounds."""
        timing, parts, cold = self._timing, self._subject.parts, self._timing.ahead.cold
        if cold not in parts:
            parts[cold] = described(timing.handle, self._turns[0], before, timing.residue_ms)
        self._notes += filter(None, [parts[cold]])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on its check and timing, where they are unusual."""
        return (*self._contract.notes, *self._subject.notes, *self._notes)

    def close(self) -> None:
        """Release the timer's graph."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        self._arrays, self._saved, self._copies, self._turns = {}, {}, [], []
