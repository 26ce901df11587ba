"""The config of a run: strict, frozen models, read from TOML or from flags."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from smembench.kernels.kernel import EXTRA_KERNELS
from smembench.kernels.problems import PROBLEMS
from smembench.model.errors import UsageError
from smembench.model.faults import wanted
from smembench.run.axes import unknown
from smembench.run.fields import (
    BLayouts,
    Blocks,
    Boolean,
    CacheModes,
    Compilers,
    Devices,
    Distributions,
    Dtypes,
    Ints,
    Kernels,
    Percent,
    Problem,
    Seconds,
    first_dtype,
    not_boolean,
    shown,
)
from smembench.run.launch_sweep import LaunchSweep, in_folder, is_launch
from smembench.run.shipped import shipped
from smembench.store.files import read_whole
from smembench.toolchains.registry import default_compiler

_MOST_BYTES = 2**20
_MOST_DOTS = 40


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Placed(_Strict):
    problem: Problem
    kernel: Kernels = ()
    device: Devices = ("auto",)
    dtype: Dtypes = Field(default_factory=first_dtype)
    cache: CacheModes = ("warm",)


AXES = tuple(dict.fromkeys(axis.name for problem in PROBLEMS.values() for axis in problem.axes))
"""Names of all problems' sizes and parameters: keys of a sweep."""

if TYPE_CHECKING:

    class _Sized(_Placed):
        def __getattr__(self, axis: str) -> tuple[int, ...]: ...

else:
    _Sized = create_model("_Sized", __base__=_Placed, **dict.fromkeys(AXES, (Ints, ())))


class Sweep(_Sized):
    """All combinations of the axes of one problem. Each axis takes a value, a list or a range."""

    stride: Ints = ()
    inputs: Distributions = ()
    b_layout: BLayouts = ()
    compiler: Compilers = Field(default_factory=lambda: (default_compiler(),))
    block: Blocks = ()
    peers: Boolean = False
    pad: Boolean | None = None
    pad_width: Ints = (1,)

    @model_validator(mode="after")
    def _sizes_agree(self) -> Self:
        PROBLEMS[self.problem].shapes(self.sizes())
        return self

    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The given sizes and parameters, by name.

        Raises:
            UsageError: for one that the problem does not have.
        """
        own = [axis.name for axis in PROBLEMS[self.problem].axes]
        given = {name: getattr(self, name) for name in AXES if getattr(self, name)}
        for name in given:
            if name not in own:
                raise UsageError(f"{self.problem} has no size {name}; it has {', '.join(own)}")
        return given


AnySweep = Annotated[
    Annotated[Sweep, Tag("sweep")] | Annotated[LaunchSweep, Tag("launches")],
    Discriminator(lambda data: "launches" if is_launch(data) else "sweep"),
]


class Config(_Strict):
    """A whole run: what to measure and how long to sample.

    Attributes:
        samples, rounds: fewest per case.
        precision: target for ``ci_width``, in percent; without it, the device's default (``assemble.CI_WIDTH``).
        max_seconds: limit for sampling a case.
        warmup: seconds per trial.
        sustained: seconds of launches back to back, once per case on a GPU, after all rounds.
        timeout: seconds that a trial may take besides sampling before its worker process is killed.
        threshold: smallest slowdown, in percent, that a comparison with earlier runs counts.
        decide: seconds that a night takes to measure its ambiguous cases again. None by default: a night then takes as
            long as the one before, and `run --decide` does the same by hand.
    """

    name: str = Field(default="run", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)
    samples: int = Field(default=30, ge=3, le=100_000)
    rounds: int = Field(default=3, ge=1, le=1000)
    precision: Percent | None = Field(default=None, gt=0, lt=100)
    max_seconds: Seconds = Field(default=30.0, gt=0, le=1e7)
    warmup: Seconds = Field(default=0.02, ge=0, le=60)
    sustained: Seconds = Field(default=0.0, ge=0, le=3600)
    timeout: Seconds = Field(default=300.0, gt=0, le=1e7)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    threshold: Percent | None = Field(default=None, ge=0, allow_inf_nan=False)
    decide: Seconds = Field(default=0.0, ge=0, le=1e5)
    sweep: tuple[AnySweep, ...] = Field(min_length=1)
    _numbers = field_validator("samples", "rounds", "seed", mode="before")(not_boolean)


def from_flags(data: dict[str, Any]) -> Config:
    """A config from command-line values; errors name the flags."""
    return _validate(data, where="", flags=True)


def from_stored(data: dict[str, Any], kernel_files: Collection[str] = (), *, where: str = "stored config: ") -> Config:
    """The config of a stored run, and the names of the kernel files that it had; errors begin with ``where``.

    Raises:
        UsageError: for what this version or these kernel files do not have, with the run's files.
    """
    try:
        return _validate(data, where=where, flags=False, stored=True)
    except UsageError as error:
        if not kernel_files:
            raise
        raise UsageError(f"{error}; the run was begun with {EXTRA_KERNELS}={':'.join(kernel_files)}") from None


def from_data(data: Mapping[str, Any], overrides: Sequence[str] = ()) -> Config:
    """A config from plain data, such as a TOML file's, with ``key=value`` overrides as in ``from_toml``.

    Raises:
        UsageError: for a key that does not exist or an invalid value.
    """
    changed = deepcopy(dict(data))
    for override in overrides:
        _override(changed, override)
    return _validate(changed, where="", flags=False)


def from_python(
    config: str | Path | Mapping[str, Any] | None, overrides: Sequence[str], keys: dict[str, Any]
) -> Config:
    """The config of a file or of its content, or that of one sweep, whose keys and those of the run are mixed.

    Raises:
        UsageError: for both, and for an invalid config.
    """
    if config is not None and keys:
        raise UsageError(f"{next(iter(keys))}: give a config or the keys of a sweep; overrides change a config")
    if config is None:
        of_run = {key: keys.pop(key) for key in list(keys) if key in Config.model_fields}
        config = {**of_run, "sweep": [keys]}
    return from_data(config, overrides) if isinstance(config, Mapping) else from_toml(Path(config), overrides)


def from_toml(path: Path, overrides: Sequence[str] = (), flags: Mapping[str, Any] = MappingProxyType({})) -> Config:
    """Read a TOML file, or a config of the package by its name, with keys from ``flags`` and ``key=value`` overrides.

    An override sets a key of the run (``samples``), a key of every sweep (``n``), or a key of one problem's sweeps
    (``transpose.n``). The default ``name`` is the file's stem.

    Raises:
        UsageError: if the file cannot be read, a key does not exist or a value is invalid; it names file and key.
    """
    path = shipped().get(str(path), path)
    try:
        data = _parsed(read_whole(path, _MOST_BYTES).decode("utf-8-sig"))
    except FileNotFoundError:
        raise UsageError(
            f"{path}: there is no such file, and {unknown(path.stem, list(shipped()), 'config')}"
        ) from None
    except IsADirectoryError:
        raise UsageError(f"{path}: is a folder; name a TOML file or a config, such as quick") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not text in UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None
    data.setdefault("name", path.stem)
    if isinstance(sweeps := data.get("sweep"), list):
        data["sweep"] = [in_folder(sweep, path.parent) if is_launch(sweep) else sweep for sweep in sweeps]
    data |= flags
    for override in overrides:
        _override(data, override)
    changed = f" with --set {', '.join(overrides)}" if overrides else ""
    options = {key for key, value in flags.items() if data[key] is value}
    return _validate(data, where=f"{path}{changed}: ", flags=False, options=options)


def _parsed(text: str) -> dict[str, Any]:
    """The content of a TOML file.

    Raises:
        ValueError: if it is none, or has a line with too many dots, whose key would take long to read.
        RecursionError: for values nested too deep.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _MOST_DOTS:
            raise ValueError(f"line {number} has over {_MOST_DOTS} dots; a key has two parts at most")
    return tomllib.loads(text)


def _override(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    key = key.strip()
    if not equals or not key:
        raise UsageError(f"--set {override!r}: write key=value, for example --set samples=50 or --set matmul.n=1024")
    value = _toml_value(text.strip())
    problem, dot, field = key.rpartition(".")
    if not dot and key in Config.model_fields and key != "sweep":
        data[key] = value
        return
    if field not in Sweep.model_fields:
        keys = [*(key for key in Config.model_fields if key != "sweep"), *Sweep.model_fields]
        raise UsageError(f"--set {override!r}: {unknown(key, keys, 'key')}")
    if dot and problem not in PROBLEMS:
        raise UsageError(f"--set {override!r}: {unknown(problem, list(PROBLEMS), 'problem')}")
    sweeps = data.get("sweep")
    listed = sweeps if isinstance(sweeps, (list, tuple)) else ()
    hits = [sweep for sweep in listed if isinstance(sweep, dict) and problem in ("", sweep.get("problem"))]
    if not hits:
        raise UsageError(f"--set {override!r}: there is no sweep of {problem or 'any problem'} to set it in")
    for sweep in hits:
        sweep[field] = value


def _toml_value(text: str) -> Any:
    """A value as TOML reads it, or as plain text if it is not TOML (``512:1024``)."""
    try:
        return _parsed(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def _validate(
    data: dict[str, Any], *, where: str, flags: bool, options: Collection[str] = (), stored: bool = False
) -> Config:
    """The config of this data, whose keys in ``options`` are the command line's, not the file's."""
    try:
        return Config.model_validate(data, context={"flags": flags, "stored": stored})
    except UsageError as error:
        raise UsageError(f"{where}{error}") from None
    except ValidationError as error:
        (key, *_) = (*error.errors(include_url=False)[0]["loc"], "")
        where, flags = ("", True) if key in options else (where, flags)
        raise UsageError(where + _explain(error, data, flags=flags)) from None


_SWEEP = 'write [[sweep]] above problem = "transpose" and what else is to be swept'
_NEEDED = {"sweep": _SWEEP, "problem": f'add one, such as problem = "transpose" ({", ".join(PROBLEMS)})'}
"""The way out where a key is missing."""
_UNITS = {
    **dict.fromkeys(("max_seconds", "warmup", "sustained", "timeout", "decide"), " s"),
    **dict.fromkeys(("precision", "threshold"), " %"),
}
"""Of the keys that are durations and percentages."""


def _explain(error: ValidationError, data: Mapping[str, Any], *, flags: bool) -> str:
    """The first error as one line: the key, the value as it was given, the reason."""
    fault = error.errors(include_url=False)[0]
    place = [str(part) for part in fault["loc"]]
    key = place[-1] if place else "file"
    within = f" in sweep {int(place[1]) + 1}" if len(place) > 2 and place[0] == "sweep" else ""
    if fault["type"] == "extra_forbidden":
        sweep = LaunchSweep if "launches" in place else Sweep
        fields = sweep.model_fields if within else Config.model_fields
        return f"{key!r}{within}: {unknown(key, list(fields), 'key')}"
    if fault["type"] == "missing":
        return f"{key!r} is missing{within}; {_NEEDED.get(key, 'add it')}"
    label = f"--{key.replace('_', '-')}" if flags else f"{key}{within}"
    given = _given(data, fault["loc"])
    value = shown(given)
    if key == "sweep":
        return f"{within.removeprefix(' in ') or key} {value}: {_SWEEP}"
    if reason := wanted(fault, _UNITS.get(key, "")):
        if flags and key in _UNITS:  # a number was read from it
            value = given if isinstance(given, str) else f"{given:g}"
        return f"{label} {value}: give {reason}"
    message = fault["msg"].removeprefix("Value error, ")
    return f"{label} {value}{' ' if message.startswith('is ') else ': '}{message[0].lower()}{message[1:]}"


def _given(data: Any, place: Sequence[int | str]) -> Any:
    """The value at an error's place, which has the tags of unions, too."""
    for part in place:
        with suppress(LookupError, TypeError):  # a tag is no key
            data = data[part]
    return data
