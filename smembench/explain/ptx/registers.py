"""Registers of a block's threads: their values, and where these are unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.explain.ptx.memory import Memory
from smembench.explain.ptx.program import ADDRESS, PtxKernel
from smembench.launches.ptx_entry import TYPES, readable
from smembench.launches.tensor_map_argument import TensorMapArgument
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP

Mask = NDArray[np.bool_]

OF_A_RUN = frozenset(
    f"%{name}"
    for name in (
        "clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi", "smid", "nsmid", "gridid",
    )
)  # fmt: skip
"""Special registers that only a run of the kernel gives a value."""


class Launch(NamedTuple):
    """The launch of a kernel.

    ``parameters`` are the bytes of its parameters by name, ``maps`` the tensor maps by the name of the parameter, or of
    the array to which it points. ``cluster`` is in blocks, and divides the grid. ``most_steps`` are the instructions
    that a block may run, as many as a machine takes if None.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    parameters: Mapping[str, bytes]
    dynamic_bytes: int = 0
    maps: Mapping[str, TensorMapArgument] = {}
    cluster: tuple[int, int, int] = (1, 1, 1)
    most_steps: int | None = None

    @property
    def clusters(self) -> tuple[int, int, int]:
        """The grid in clusters."""
        x, y, z = (blocks // size for blocks, size in zip(self.grid, self.cluster, strict=True))
        return x, y, z


class Registers:
    """Values by name, each a scalar or an array with an element per thread, block after block of a cluster.

    An array is replaced and never changed.

    Attributes:
        threads: of a cluster, which is a block in most kernels.
        block: threads of a block.
        everyone: the mask of all threads; where a register is unknown in all of them, it is this very array.
    """

    def __init__(self, kernel: PtxKernel, launch: Launch, memory: Memory) -> None:
        self.kernel, self.launch, self.memory = kernel, launch, memory
        self.block, self.blocks = prod(launch.block), prod(launch.cluster)
        self.threads = self.block * self.blocks
        self.everyone: Mask = np.broadcast_to(np.bool_(True), self.threads)  # which nothing can write to
        self.values: dict[str, Any] = {}
        self._unknown: dict[str, Mask] = {}
        self._nothing: dict[str, Any] = {}
        self._special = self._specials()

    def enter(self, index: tuple[int, int, int]) -> None:
        """Begin a cluster."""
        self.values.clear()
        self._unknown.clear()
        for axis, value, size in zip("xyz", index, self.launch.cluster, strict=True):
            self._special[f"%clusterid.{axis}"] = np.uint32(value)
            self._special[f"%ctaid.{axis}"] = np.uint32(value * size) + self._special[f"%cluster_ctaid.{axis}"]

    def spread(self, value: Any) -> Any:
        """A value with an element per thread."""
        return value if np.shape(value) else np.broadcast_to(value, self.threads)

    def refused(self, line: int, what: str) -> UsageError:
        """The error for what is not traced."""
        return UsageError(f"{readable(self.kernel.name)}, line {line}: {what} is not traced")

    def operand(self, text: str, kind: str) -> Callable[[], Any]:
        """A function that returns an operand in NumPy's type ``kind``."""
        text, wanted = text.strip(), np.dtype(kind)
        if text.startswith(("!", "-")) and self.kernel.type_of(text[1:]) is not None:
            inner = self.operand(text[1:], kind)
            return lambda: ~inner() if text[0] == "!" else -inner()
        if text in self._special:
            special = self._special
            return lambda: seen_as(special[text], wanted)
        declared = self.kernel.type_of(text)
        if declared is not None:
            registers, nothing = self.values, self.nothing(text)

            def register() -> Any:
                value = registers.get(text, nothing)
                return value if value.dtype is wanted else seen_as(value, wanted)

            return register
        name, _, offset = text.partition("+")
        if name in self.kernel.variables or name in self.launch.parameters:
            value = np.uint64(self.memory.address_of(name) + int(offset or "0", 0))
            return lambda: seen_as(value, wanted)
        constant = _constant(text, wanted)
        return lambda: constant

    def unknown_in(self, names: Sequence[str]) -> Mask | None:
        """The threads in which any of these registers is unknown; None if all are known."""
        unknown: Mask | None = None
        for name in names if self._unknown else ():
            one = self._unknown.get(name)
            if one is self.everyone:
                return one
            if one is not None:
                unknown = one if unknown is None else unknown | one
        return unknown

    def write(self, name: str, value: Any, mask: Mask | None, unknown: Any = None) -> None:
        """Give a register a value in the threads of a mask, all if None; ``unknown`` is where it is not known."""
        declared, given = self.nothing(name).dtype, value.dtype
        if given is not declared and (given.itemsize != declared.itemsize or given.kind == "b" != declared.kind):
            kind = given.kind if given.kind in "iu" else declared.kind
            value = value.astype(f"{kind}{declared.itemsize}")
        if mask is not None:
            before = seen_as(self.values.get(name, np.zeros((), value.dtype)[()]), value.dtype)
            value = np.where(mask, value, before)
        self.values[name] = value
        if unknown is None and (mask is None or name not in self._unknown):
            self._unknown.pop(name, None)
            return
        now: Any = np.False_ if unknown is None else unknown
        if mask is not None:
            now = np.where(mask, now, self._unknown.get(name, np.False_))
        if now is self.everyone or now.all():
            self._unknown[name] = self.everyone
        elif now.any():
            self._unknown[name] = now
        else:
            self._unknown.pop(name, None)

    def forget(self, names: Iterable[str], mask: Mask) -> None:
        """Mark registers as unknown in the threads of a mask."""
        for name in names:
            self.write(name, self.nothing(name), mask, self.everyone)

    def nothing(self, name: str) -> Any:
        """A zero of a register's type."""
        if name not in self._nothing:
            self._nothing[name] = np.zeros((), TYPES[self.kernel.type_of(name) or "b32"])[()]
        return self._nothing[name]

    def address(self, text: str) -> tuple[Callable[[], Any], list[str]]:
        """A function that returns the address in brackets, and the registers in it."""
        match = ADDRESS.fullmatch(text)
        if match is None:
            raise UsageError(f"{readable(self.kernel.name)}: the address {text} is not traced")
        offset = int(match[3] or "0", 0) * (-1 if match[2] == "-" else 1)
        declared = self.kernel.type_of(match[1])
        kind = "u8" if declared is None else f"u{np.dtype(TYPES[declared]).itemsize}"
        base = self.operand(match[1], kind)
        names = [match[1]] if declared is not None else []
        return lambda: np.asarray(base()).astype(np.int64) + offset, names

    def predicate(self, name: str, *, negated: bool) -> tuple[Mask, Mask | None]:
        """The threads whose predicate is known and true, and those in which it is unknown; None for nowhere."""
        value = np.broadcast_to(self.values.get(name, np.bool_(False)), self.threads)
        taken = ~value if negated else value
        unknown = self.unknown_in([name])
        return (taken, None) if unknown is None else (taken & ~unknown, unknown)

    def _specials(self) -> dict[str, Any]:
        numbers = np.arange(self.threads, dtype=np.uint32) % np.uint32(self.block)
        x, y, _ = self.launch.block
        values: dict[str, Any] = {
            "%tid.x": numbers % np.uint32(x),
            "%tid.y": numbers // np.uint32(x) % np.uint32(y),
            "%tid.z": numbers // np.uint32(x * y),
            "%laneid": numbers % np.uint32(WARP),
            "%warpid": numbers // np.uint32(WARP),
            "%nwarpid": np.uint32(-(-self.block // WARP)),
            "%dynamic_smem_size": np.uint32(self.launch.dynamic_bytes),
            "%total_smem_size": np.uint32(self.kernel.shared_bytes + self.launch.dynamic_bytes),
            "WARP_SZ": np.uint32(WARP),
            "%envreg1": np.uint32(self.memory.workspace >> 32),  # as cooperative_groups.h reads its address
            "%envreg2": np.uint32(self.memory.workspace & 2**32 - 1),
            **self._of_clusters(),
        }
        lane = numbers % np.uint32(WARP)
        one = np.uint32(1)
        below = (one << lane) - one
        masks = {"lt": below, "le": below | one << lane, "eq": one << lane, "gt": ~(below | one << lane), "ge": ~below}
        values.update({f"%lanemask_{name}": value for name, value in masks.items()})
        for axis, threads, blocks in zip("xyz", self.launch.block, self.launch.grid, strict=True):
            values[f"%ntid.{axis}"], values[f"%nctaid.{axis}"] = np.uint32(threads), np.uint32(blocks)
        return values

    def _of_clusters(self) -> dict[str, Any]:
        """The special registers of blocks in a cluster, but its index; scalars for a single block."""
        width, height, _ = self.launch.cluster
        numbers = np.arange(self.threads) // self.block if self.blocks > 1 else np.int64(0)
        values = {
            "%cluster_ctarank": numbers.astype(np.uint32),
            "%cluster_nctarank": np.uint32(self.blocks),
            "%is_explicit_cluster": np.bool_(self.blocks > 1),
        }
        places = numbers % width, numbers // width % height, numbers // (width * height)
        for axis, place, size, clusters in zip("xyz", places, self.launch.cluster, self.launch.clusters, strict=True):
            values[f"%cluster_ctaid.{axis}"] = place.astype(np.uint32)
            values[f"%cluster_nctaid.{axis}"] = np.uint32(size)
            values[f"%nclusterid.{axis}"] = np.uint32(clusters)
            values[f"%clusterid.{axis}"] = values[f"%ctaid.{axis}"] = np.uint32(0)
        return values


def seen_as(value: Any, wanted: np.dtype[Any]) -> Any:
    """A value in another type: the same bits, or the lowest of them."""
    if value.dtype == wanted:
        return value
    if value.dtype.kind == "b" or wanted.kind == "b":
        return value.astype(wanted)
    if value.dtype.itemsize == wanted.itemsize:
        return value.view(wanted)
    narrow = value if value.dtype.kind in "iu" else value.view(f"u{value.dtype.itemsize}")
    unsigned = narrow.astype(f"u{wanted.itemsize}")
    return unsigned.view(wanted)


def _constant(text: str, wanted: np.dtype[Any]) -> Any:
    """A constant of PTX: an integer, or the bits of a floating-point number after 0f or 0d."""
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", text):
        value: Any = np.uint32(int(match[1], 16)).view("f4") if match[1] else np.uint64(int(match[2], 16)).view("f8")
        if wanted.kind in "iu" and value.dtype.itemsize == wanted.itemsize:
            value = value.view(f"u{value.dtype.itemsize}")
        return value.astype(wanted)
    try:
        number = int(text.rstrip("U"), 0)
    except ValueError:
        raise UsageError(f"operand {text!r} is not traced") from None
    if wanted.kind == "b":
        return np.bool_(number)
    if wanted.kind == "f":
        return wanted.type(number)
    return np.uint64(number & (1 << 64) - 1).astype(f"u{wanted.itemsize}").view(wanted)
