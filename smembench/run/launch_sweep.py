"""A sweep of kernels of the user's: launches whose sizes are given, and what of them is checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from smembench.devices.base import GUARD_BYTES
from smembench.kernels.time.problem import NO_DTYPE, PROBLEM
from smembench.launches.arguments import in_order_and_named
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.dimensions import Dimensions, check_launch
from smembench.launches.sizes import argument, dimensions_of, number
from smembench.launches.tensor_map_argument import TensorMapArgument
from smembench.model.case import Block, Case
from smembench.model.errors import UsageError
from smembench.model.user_launch import UNCHECKED, UserLaunch
from smembench.run.axes import parse_ints
from smembench.run.fields import CacheModes, Devices

_COMPILERS = {".cu": "cuda", ".ptx": "ptx", ".cubin": "cubin", ".py": "python"}
"""The compiler that a case names, by the suffix of its file; what Python holds is known when it is imported."""


def _texts(value: Any) -> tuple[str, ...]:
    """A list, or a single value, as texts."""
    items = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(item, bool) or not isinstance(item, str | int | float) for item in items):
        raise ValueError("write a string or a list of them")
    return tuple(map(str, items))


def _sizes(value: Any) -> dict[str, tuple[int, ...]]:
    """Sizes by name, each a number, a list or a range."""
    if not isinstance(value, Mapping) or not all(str(name).isidentifier() for name in value):
        raise ValueError("write sizes by name, such as {n = '1k:8k:*2'}")
    return {name: parse_ints(",".join(_texts(values)), name=name) for name, values in value.items()}


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Text = Annotated[str, BeforeValidator(str)]


class LaunchSweep(BaseModel):
    """All sizes of some kernels of the user's, launched alike. Expressions may name sizes.

    Attributes:
        kernel: targets, ``path.cu:name``.
        name: in place of the file and the kernel, if two launches of one kernel differ otherwise than by sizes.
        sizes: by name; each combination is a case.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: Literal["time"] = "time"
    kernel: Texts = Field(min_length=1)
    name: str = ""
    device: Devices = ("auto",)
    cache: CacheModes = ("warm",)
    sizes: Annotated[dict[str, tuple[int, ...]], BeforeValidator(_sizes)] = {}
    grid: Text = ""
    block: Text = ""
    cluster: Text = ""
    arg: Texts = ()
    shared_bytes: Text = "0"
    cooperative: bool = False
    carveout: int | None = Field(default=None, ge=0, le=100)
    option: Texts = ()
    out: Texts = ()
    inout: Texts = ()
    reset: Texts = ()
    check: str = ""
    rtol: float | None = Field(default=None, ge=0)
    atol: float | None = Field(default=None, ge=0)
    bytes: Text = ""
    flops: Text = "0"

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the kernels in tables, in order."""
        if self.name and len(self.kernel) == 1:
            return (self.name,)
        return tuple(Path(path).name + colon + name for path, colon, name in (k.partition(":") for k in self.kernel))

    @property
    def count(self) -> int:
        """Cases on a device."""
        found = len(self.kernel) * len(self.cache)
        for values in self.sizes.values():
            found *= len(values)
        return found

    def cases(self, device: str) -> Iterator[Case]:
        """The cases on a device, kernels of one size one after another.

        Raises:
            UsageError: for an expression, an argument or dimensions that are none.
        """
        for values in product(*self.sizes.values()):
            sizes = dict(zip(self.sizes, values, strict=True))
            for cache, (target, label) in product(self.cache, zip(self.kernel, self.labels, strict=True)):
                yield self._case(device, cache, (target, label), sizes)

    def _case(self, device: str, cache: str, kernel: tuple[str, str], sizes: dict[str, int]) -> Case:
        target, label = kernel
        block = self._dimensions("block", sizes)
        launch = self._launch(target, block, sizes)
        arguments, _ = in_order_and_named(launch.arguments)
        arrays = [each for each in arguments if isinstance(each, ArrayArgument)]
        return Case(
            *(PROBLEM.name, label, device, _dtype(arrays), 1, sizes.get("n", 1)),
            block=Block(*(*block, 1)[:2]) if 0 < len(block) < 3 else None,
            cache=cache,
            compiler=_COMPILERS.get(Path(target.partition(":")[0]).suffix, "python"),
            parameters=tuple((name, value) for name, value in sizes.items() if name != "n"),
            launch=launch,
        )

    def _dimensions(self, name: str, sizes: dict[str, int]) -> Dimensions:
        text: str = getattr(self, name)
        return dimensions_of(text, sizes, f"--{name}") if text else ()

    def _launch(self, target: str, block: Dimensions, sizes: dict[str, int]) -> UserLaunch:
        grid = self._dimensions("grid", sizes)
        if grid and block:
            check_launch(grid, block)
        texts = tuple(argument(text, sizes) for text in self.arg)
        arguments, _ = in_order_and_named(texts)
        places = {**sizes, **{f"bytes{place}": each for place, each in enumerate(map(_bytes, arguments)) if each}}
        return UserLaunch(
            target,
            texts,
            grid,
            block,
            self._dimensions("cluster", sizes),
            number(self.shared_bytes, sizes, "--shared-bytes"),
            self.cooperative,
            self.carveout,
            self.option,
            self.out,
            self.inout,
            tuple(map(_reset, self.reset)),
            self.check or UNCHECKED,
            self.rtol,
            self.atol,
            tuple(size + 2 * GUARD_BYTES for size in map(_allocated, arguments) if size is not None),
            number(self.bytes, places, "--bytes") if self.bytes else max(sum(map(_bytes, arguments)), 1),
            number(self.flops, places, "--flops"),
        )


def _dtype(arrays: Sequence[ArrayArgument]) -> str:
    """The element type of the first array, as tables name it, or ``NO_DTYPE``."""
    return arrays[0].dtype.name.removesuffix("fn") if arrays else NO_DTYPE


def _bytes(value: Argument) -> int:
    """The bytes of an array's elements, of a tensor map its array's; 0 for a number."""
    if isinstance(value, TensorMapArgument):
        return ArrayArgument(value.shape, value.dtype).bytes
    return value.element_bytes if isinstance(value, ArrayArgument) else 0


def _allocated(value: Argument) -> int | None:
    """The bytes of an array's allocation; None for a number."""
    if isinstance(value, TensorMapArgument):
        return _bytes(value)
    return value.bytes if isinstance(value, ArrayArgument) else None


def _reset(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--reset {text!r}: write the argument and what it is filled with, such as 3=0")
    return name.strip(), value.strip()


def is_launch(data: object) -> bool:
    """Whether a sweep, as a file or the command line has it, is one of the user's kernels: it names files."""
    if isinstance(data, LaunchSweep):
        return True
    if not isinstance(data, Mapping) or "problem" in data:
        return isinstance(data, Mapping) and data["problem"] == PROBLEM.name
    named = data.get("kernel")
    return any(":" in str(each) for each in (named if isinstance(named, (list, tuple)) else [named]))
