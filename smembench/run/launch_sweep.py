"""A sweep of kernels of the user's: launches whose sizes are given, and what of them is checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from smembench.kernels.time.problem import PROBLEM
from smembench.run.axes import parse_ints
from smembench.run.fields import EMPTY, Boolean, CacheModes, Devices, Written, not_boolean

SUFFIXES = (".cu", ".ptx", ".cubin", ".py", ".npy")
"""Of files that a sweep names."""


def _texts(value: Any) -> tuple[str, ...]:
    """A list, or a single value, as texts; in Python numbers may be NumPy's."""
    items = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(item, bool) or not isinstance(item, str | float | Integral) for item in items):
        raise ValueError("write a string or a list of them")
    return tuple(map(str, items))


def _text(value: Any) -> str:
    """A value as text, a list with commas."""
    if not (texts := _texts(value)):
        raise ValueError(EMPTY)
    return ",".join(texts)


def _name(value: str) -> str:
    """A name, which is one part of a case's id."""
    if "/" in value:
        raise ValueError("leave / out, which separates the parts of a case's id")
    return value


def _sizes(value: Any) -> dict[str, tuple[int, ...]]:
    """Sizes by name, each a number, a list or a range."""
    if not isinstance(value, Mapping) or not all(str(name).isidentifier() for name in value):
        raise ValueError("write sizes by name, such as {n = '1k:8k:*2'}")
    return {name: parse_ints(_text(values), name=name) for name, values in value.items()}


_Value = str | float
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts, json_schema_input_type=_Value | list[_Value])]
Text = Annotated[str, BeforeValidator(_text, json_schema_input_type=_Value | list[_Value])]
Sizes = Annotated[dict[str, tuple[int, ...]], BeforeValidator(_sizes, json_schema_input_type=dict[str, Written])]


class LaunchSweep(BaseModel):
    """All sizes of some kernels of the user's, launched alike. Expressions may name sizes.

    Attributes:
        kernel: targets, ``path.cu:name``.
        name: in place of the file and the kernel, if two launches of one kernel differ otherwise than by sizes.
        sizes: by name; each combination is a case.
        tune: the same for values that the kernel is compiled with: macros of a .cu file, else arguments by name.
        where: an expression that a combination has to meet.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: Literal["time"] = "time"
    kernel: Texts = Field(min_length=1)
    name: Annotated[str, AfterValidator(_name)] = ""
    device: Devices = ("auto",)
    cache: CacheModes = ("warm",)
    sizes: Sizes = {}
    tune: Sizes = {}
    where: Text = "1"
    grid: Text = ""
    block: Text = ""
    cluster: Text = ""
    arg: Texts = ()
    shared_bytes: Text = "0"
    cooperative: Boolean = False
    carveout: int | None = Field(default=None, ge=0, le=100)
    option: Texts = ()
    out: Texts = ()
    inout: Texts = ()
    reset: Texts = ()
    scratch: Texts = ()
    check: str = ""
    rtol: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    atol: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    bytes: Text = ""
    flops: Text = "0"
    _numbers = field_validator("carveout", "rtol", "atol", mode="before")(not_boolean)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the kernels in tables, in order; with as many folders as distinguish files of one name."""
        if self.name and len(self.kernel) == 1:
            return (self.name,)
        parts = [(Path(path).parts, colon + name) for path, colon, name in (k.partition(":") for k in self.kernel)]
        for length in range(1, max(len(path) for path, _ in parts)):
            short = tuple(":".join(path[-length:]) + name for path, name in parts)
            if len({*short}) == len({*self.kernel}):
                return short
        return tuple(":".join(path) + name for path, name in parts)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it names, those of kernels and references."""
        named = (text.partition(":")[0] for text in (*self.kernel, self.check))
        return tuple(dict.fromkeys(path for path in named if Path(path).suffix in SUFFIXES))

    @property
    def data(self) -> tuple[str, ...]:
        """The files of arrays that arguments name."""
        named = (re.fullmatch(r"(?:[A-Za-z_]\w*=)?(?:\w+\s+)?(\S.*\.npy)", text, re.ASCII) for text in self.arg)
        return tuple(dict.fromkeys(match[1] for match in named if match))

    @property
    def count(self) -> int:
        """Cases on a device, or more."""
        return math.prod(map(len, (self.kernel, self.cache, *self.sizes.values(), *self.tune.values())))


def in_folder(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A sweep of a file whose paths are relative to the file's folder."""

    def placed(text: Any) -> Any:
        typed = re.fullmatch(r"(\w+\s+)(\S.*\.npy)", str(text))  # such as bfloat16 x.npy
        kind, named = typed.groups() if typed else ("", str(text))
        path = Path(named.partition(":")[0])
        return f"{kind}{folder / named}" if path.suffix in SUFFIXES and not path.is_absolute() else text

    resolved = dict(data)
    for key in ("kernel", "check", "arg"):
        value = data.get(key)
        if isinstance(value, (list, tuple)):
            resolved[key] = [*map(placed, value)]
        elif value is not None:
            resolved[key] = placed(value)
    return resolved


def is_launch(data: object) -> bool:
    """True if a sweep, from a file or the command line, is of the user's kernels: it names files."""
    if isinstance(data, LaunchSweep):
        return True
    if not isinstance(data, Mapping) or "problem" in data:
        return isinstance(data, Mapping) and data["problem"] == PROBLEM.name
    named = data.get("kernel")
    return any(":" in str(kernel) for kernel in (named if isinstance(named, (list, tuple)) else [named]))
