"""Signatures of commands that are made of parts: the fields of dataclasses, or what a problem declares."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields
from typing import Annotated, Any, get_type_hints


def takes(**groups: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of dataclasses to a command: each field is an option, and the command receives the instances.

    Help shows the options of a dataclass in the panel that it names, if any; inherited ones in that of their own class.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(command, eval_str=True).parameters.values()
        shown = [parameter for parameter in parameters if parameter.name not in groups]
        for group in groups.values():
            hints = get_type_hints(group, include_extras=True)
            for field in fields(group):
                kind = hints[field.name]
                if panel := _panel(group, field.name):
                    option = copy(kind.__metadata__[0])
                    option.rich_help_panel = panel
                    kind = Annotated[kind.__origin__, option]
                shown.append(keyword(field.name, kind, field.default))

        @functools.wraps(command)
        def wrapper(**values: Any) -> None:
            made = {
                name: group(**{field.name: values.pop(field.name) for field in fields(group)})
                for name, group in groups.items()
            }
            command(**values, **made)

        sign(wrapper, shown)
        delattr(wrapper, "__wrapped__")
        return wrapper

    return decorate


def _panel(group: type[Any], field: str) -> str | None:
    """The panel of the class that declares a field."""
    owner = next(cls for cls in group.__mro__ if field in vars(cls).get("__annotations__", {}))
    return getattr(owner, "panel", None)


def keyword(name: str, kind: Any, default: object = None) -> inspect.Parameter:
    """A parameter of a command that Typer shows as an option; ``kind`` is its annotation."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def sign(command: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> None:
    """Show Typer these parameters of a command that takes ``**values``."""
    setattr(command, "__signature__", inspect.Signature(parameters))  # noqa: B010 - mypy knows no such attribute
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
