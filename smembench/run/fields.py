"""Fields of a sweep: what a file or a flag has for them becomes names, numbers and blocks that the problem has."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, Strict, ValidationInfo, WithJsonSchema

from smembench.devices.select import canonical
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import CACHES, Block
from smembench.model.errors import UsageError
from smembench.model.numbers import percent, seconds
from smembench.run.axes import parse_blocks, parse_ints, parse_kernels, parse_names, split, unknown
from smembench.toolchains import registry as toolchains

Written = int | str | list[int | str]
"""Values of a sweep in a file, as in its JSON schema: ``8``, ``"1k:8k:*2"`` or a list of such."""
EMPTY = "give at least one value, or leave the key out"
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 200


def _as_text(value: Any, label: str) -> str:
    """A TOML number, string or list of them as command-line text; in Python numbers may be NumPy's."""
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    try:
        if all(isinstance(item, (str, Integral)) and not isinstance(item, bool) for item in items):
            return ",".join(map(str, items))
    except ValueError:  # Python writes no number of thousands of digits
        pass
    raise UsageError(f"{label} {shown(value)}: write a whole number, a string or a list of them")


def shown(value: Any) -> str:
    """A value as an error shows it, as TOML has it, however long it is or however deep."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        return _REPR.repr(value)
    except ValueError:
        return "a number of thousands of digits"


def _values(parse: Callable[[str, str, str], tuple[Any, ...]], *, optional: bool = False) -> BeforeValidator:
    """Validates a field of a sweep by ``parse(text, label, problem)``; an ``optional`` one is stored as an empty list.

    The label is the field as the user writes it: ``pad_width`` in a file, ``--pad-width`` on the command line.
    """

    def validate(value: Any, info: ValidationInfo) -> tuple[Any, ...]:
        problem, name, context = info.data.get("problem"), info.field_name or "", info.context or {}
        empty = isinstance(value, (list, tuple)) and not value
        if problem is None or (empty and optional and context.get("stored")):
            return ()
        label = f"--{name.replace('_', '-')}" if context.get("flags") else name
        if empty:
            raise UsageError(f"{label} []: {EMPTY}")
        return parse(_as_text(value, label), label, problem)

    return BeforeValidator(validate, json_schema_input_type=Written)


def _problem(value: Any) -> str:
    if not isinstance(value, str) or value not in PROBLEMS:
        raise ValueError(unknown(value if isinstance(value, str) else "", list(PROBLEMS), "problem"))
    return str(value)


def _kernels(text: str, label: str, problem: str) -> tuple[str, ...]:
    from smembench.kernels import registry

    try:
        return parse_names(text, registry.names(problem, "cpu"), name=label, what="CPU kernel")
    except UsageError:  # the others' names take Numba's import
        return parse_kernels(text, registry.names(problem), name=label, what=f"{problem} kernel")


def _devices(text: str, label: str, problem: str) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(map(canonical, split(text))))
    except UsageError as error:
        raise UsageError(f"{label} {str(error).removeprefix('device ')}") from None


def not_boolean(value: Any) -> Any:
    """A number as it is written, but for true and false, which Python takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("give a number, not true or false")
    return value


def first_dtype(data: dict[str, Any]) -> tuple[str, ...]:
    """The default of a sweep's ``dtype``, from its fields before."""
    problem = data.get("problem")
    return () if problem is None else PROBLEMS[problem].dtypes[:1]


def _names(allowed: Callable[[str], Sequence[str]], what: str, *, optional: bool = False) -> BeforeValidator:
    """Validates names that are ``allowed`` for the problem; errors call them ``what``, with the problem for ``{}``."""

    def parse(text: str, label: str, problem: str) -> tuple[str, ...]:
        return parse_names(text, allowed(problem), name=label, what=what.format(problem))

    return _values(parse, optional=optional)


Names = tuple[str, ...]
Boolean = Annotated[bool, Strict()]
Problem = Annotated[str, BeforeValidator(_problem), WithJsonSchema({"enum": list(PROBLEMS)})]
Kernels = Annotated[Names, _values(_kernels, optional=True)]
Devices = Annotated[Names, _values(_devices)]
Dtypes = Annotated[Names, _names(lambda problem: PROBLEMS[problem].dtypes, "element type for {}")]
CacheModes = Annotated[Names, _names(lambda _: CACHES, "cache mode")]
Distributions = Annotated[
    Names, _names(lambda problem: PROBLEMS[problem].distributions, "distribution of {}'s inputs", optional=True)
]
BLayouts = Annotated[
    Names, _names(lambda problem: PROBLEMS[problem].b_layouts, "layout of {}'s second matrix", optional=True)
]
Compilers = Annotated[Names, _names(lambda _: toolchains.names(), "compiler")]
Ints = Annotated[tuple[int, ...], _values(lambda text, label, _: parse_ints(text, name=label), optional=True)]
Blocks = Annotated[
    tuple[Block, ...],
    _values(lambda text, label, _: parse_blocks(text, name=label), optional=True),
    PlainSerializer(lambda blocks: [*map(str, blocks)]),
]
Seconds = Annotated[float, BeforeValidator(seconds, json_schema_input_type=float | str)]
Percent = Annotated[float, BeforeValidator(percent, json_schema_input_type=float | str)]
