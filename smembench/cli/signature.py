"""Signatures of commands: options, alone and in dataclasses, and those of what a problem declares."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform, get_type_hints

import typer
from typer.models import OptionInfo

T = TypeVar("T")


def option(metavar: str | None, text: str, *names: str, default: object = None, **more: Any) -> Any:
    """The default of a parameter that is an option with a value, ``--max-seconds`` for ``max_seconds``.

    ``names`` are further ones, or another long one.
    """
    return typer.Option(default, *names, metavar=metavar, help=text, **more)


def flag(text: str, *names: str, default: bool | None = False, **more: Any) -> Any:
    """The same without a value."""
    return typer.Option(default, *names, help=text, **more)


def argument(metavar: str, text: str, *, default: object = None, **more: Any) -> Any:
    """The default of a parameter that is an argument; that of a required one is ``...``."""
    return typer.Argument(default, metavar=metavar, help=text, **more)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def group(panel: str | None = None) -> Callable[[type[T]], type[T]]:
    """A dataclass of options, which help shows in this panel; inherited ones in that of their own class."""

    def decorate(cls: type[T]) -> type[T]:
        for name, shared in list(vars(cls).items()):
            if isinstance(shared, OptionInfo):
                own = copy(shared)
                own.rich_help_panel = panel
                setattr(cls, name, field(default=own.default, metadata={"option": own}))
        return dataclass(frozen=True, kw_only=True)(cls)

    return decorate


def takes(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of groups to a command: each field is an option, and the command receives the instances."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(command, eval_str=True).parameters.values()
        shown = [parameter for parameter in parameters if parameter.name not in groups]
        for taken in groups.values():
            hints = get_type_hints(taken)
            shown += [keyword(own.name, hints[own.name], own.metadata["option"]) for own in fields(taken)]

        @functools.wraps(command)
        def wrapper(**values: Any) -> None:
            made = {
                name: taken(**{own.name: values.pop(own.name) for own in fields(taken)})
                for name, taken in groups.items()
            }
            command(**values, **made)

        sign(wrapper, shown)
        delattr(wrapper, "__wrapped__")
        return wrapper

    return decorate


def keyword(name: str, kind: Any, option: object) -> inspect.Parameter:
    """A parameter of a command that Typer shows as this option; ``kind`` is its annotation."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind)


def sign(command: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> None:
    """Show Typer these parameters of a command that takes ``**values``."""
    signature = inspect.Signature([_named(parameter) for parameter in parameters])
    setattr(command, "__signature__", signature)  # noqa: B010 - mypy knows no such attribute
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def _named(parameter: inspect.Parameter) -> inspect.Parameter:
    """The parameter with an option of its name, unless the option has another long one. Typer would add --no-…"""
    names = getattr(parameter.default, "param_decls", None) or ()
    if not isinstance(parameter.default, OptionInfo) or any(name.startswith("--") for name in names):
        return parameter
    own = copy(parameter.default)
    own.param_decls = (f"--{parameter.name.strip('_').replace('_', '-')}", *names)
    return parameter.replace(default=own)
