"""Commands, and their help: a page with the command's own options; ``--help-all`` describes every option."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import cleandoc
from pathlib import Path
from typing import Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from smembench.cli.signature import flag, keyword, sign
from smembench.model.errors import UsageError

_ALL = "smembench.help_all"
_EXAMPLES = 5
"""Most examples on the page."""


class _OneStyle:
    """Commands whose help shows defaults in one style, and no type beside a flag, which takes no value."""

    def get_params(self, context: Any) -> list[Any]:
        options: list[Any] = super().get_params(context)  # type: ignore[misc]
        for option in options:
            if getattr(option, "is_flag", False):
                option.metavar = ""
            elif getattr(option, "show_default", False) and option.default not in (None, (), []):
                option.show_default = False
                if "(default: " not in (option.help or ""):
                    option.help = f"{option.help or ''} (default: {_text(option.default)})".strip()
        return options


def _text(default: object) -> str:
    return f"{default:g}" if isinstance(default, float) else str(default)


class Group(_OneStyle, TyperGroup):
    """A group of commands."""


class Command(_OneStyle, TyperCommand):
    """A command whose help names the options of panels, which ``--help-all`` describes. It takes no empty path."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            UsageError: for a path of no characters, such as that of a variable that is not set: it is no folder, not
                even the working directory, for which Python takes it.
        """
        texts, _, _ = self.make_parser(ctx).parse_args([*args])
        kinds = inspect.signature(self.callback).parameters if self.callback and not ctx.resilient_parsing else {}
        for option in self.get_params(ctx):
            text, kind = texts.get(option.name), kinds[option.name].annotation if option.name in kinds else None
            if "" in (text if isinstance(text, (list, tuple)) else (text,)) and Path in (kind, *get_args(kind)):
                label = option.metavar if option.param_type_name == "argument" else option.opts[0]
                raise UsageError(f"{label} '': is empty; give a path, such as . for the working directory")
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help: on a page, unless all is asked for."""
        if ctx.meta.get(_ALL):
            super().format_help(ctx, formatter)
            return
        shown = self.help, self.epilog
        options = [one for one in self.get_params(ctx) if not getattr(one, "hidden", True)]
        panels: dict[str, list[Any]] = {}
        for option in options:
            if panel := getattr(option, "rich_help_panel", None):
                panels.setdefault(panel, []).append(option)
        try:
            self.help = _page(self.help or "")
            names = "; ".join(f"{panel}: {', '.join(one.opts[0] for one in of)}" for panel, of in panels.items())
            self.epilog = f"More options (--help-all describes them). {names}." if names else self.epilog
            _hide(panels, hidden=True)
            super().format_help(ctx, formatter)
        finally:
            _hide(panels, hidden=False)
            self.help, self.epilog = shown


def _hide(panels: dict[str, list[Any]], *, hidden: bool) -> None:
    for options in panels.values():
        for option in options:
            option.hidden = hidden


def _page(text: str) -> str:
    """A command's summary, the first paragraph below it, and the first examples."""
    prose, mark, examples = text.partition("Examples:")
    lines = [line for line in examples.split("\n") if line.strip()]
    return "\n\n".join([*prose.strip().split("\n\n")[:2], *([mark, "\n".join(lines[:_EXAMPLES])] if mark else [])])


def described(command: Callable[..., Any]) -> str:
    """A command's docstring without its line breaks, which Typer would keep at any screen width."""
    paragraphs = cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else text.replace("\n", " ") for text in paragraphs)


def with_help_all(command: Callable[..., None]) -> Callable[..., None]:
    """The command with ``--help-all``."""

    @functools.wraps(command)
    def wrapper(*, help_all: bool, **values: Any) -> None:
        command(**values)

    every = flag("Describe every option and exit.", is_eager=True, callback=_show_all)
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    sign(wrapper, [*parameters, keyword("help_all", bool, every)])
    delattr(wrapper, "__wrapped__")
    return wrapper


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit
