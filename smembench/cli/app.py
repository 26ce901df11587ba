"""The Typer app and the process's exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any

import typer

from smembench.cli import baseline, problems
from smembench.model.errors import SmembenchError
from smembench.model.version import VERSION

_SIGNALLED = 130
"""What Typer returns after Ctrl-C; a run that is interrupted while it measures raises its own error."""

app = typer.Typer(
    name="smembench",
    help="Benchmark of GPU shared memory: transpose and matrix multiplication, verified, then timed.",
    epilog="Exit codes: 0 all ok, 1 a case failed, 2 wrong usage, 3 slower, 4 no such device, 130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"smembench {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def _help(command: Callable[..., None]) -> str:
    """A command's docstring without its line breaks, which Typer would keep at any screen width."""
    paragraphs = cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(text if text.startswith(" ") else text.replace("\n", " ") for text in paragraphs)


_FILES = "ladder compilers reproduce run show compare report history explain lesson tune list doctor"
"""The files with a command of their name, in the order of the help."""


def _command(name: str) -> Callable[..., None]:
    module = import_module(f"smembench.cli.{name}")
    command: Callable[..., None] = getattr(module, name, None) or getattr(module, f"{name}_")
    return command


for command in (*problems.commands(), *map(_command, _FILES.split())):
    app.command(name=command.__name__.rstrip("_"), help=_help(command))(command)
app.add_typer(baseline.app, name="baseline")


def main() -> None:
    """Run the command line. An expected error is one line on stderr and an exit code."""
    try:
        code: Any = app(standalone_mode=False)
        # Flush here: a failure when Python flushes at exit would be a traceback.
        sys.stdout.flush()
        if code == _SIGNALLED:
            _fail("interrupted", code)
    except SmembenchError as error:
        code = _fail(error, error.exit_code)
    except BrokenPipeError:
        code = _unread()
    except SystemExit as left:  # Typer's own way out when the reader is gone
        if not isinstance(left.__context__, BrokenPipeError):
            raise
        code = _unread()
    except (KeyboardInterrupt, typer.Abort):
        code = _fail("interrupted", 130)
    except Exception as error:
        # Typer's own usage errors: its Click is vendored, so their class cannot be imported.
        if not hasattr(error, "format_message"):
            raise
        command = getattr(getattr(error, "ctx", None), "command_path", app.info.name)
        code = _fail(f"{_message(error)} (see: {command} --help)", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _message(error: Any) -> str:
    """Typer's message, with the invalid value, which versions of Typer that use pydantic leave out."""
    errors = getattr(error.__cause__, "errors", None)
    if errors is None:
        return str(error.format_message())
    return str(error.format_message()).replace("Invalid value", f"Invalid value {errors()[0]['input']!r}", 1)


def _unread() -> int:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python fails once more at its exit
    return _fail("the reader of the output closed it; the rest was not printed", 0)


def _fail(message: object, code: int) -> int:
    try:
        print(f"smembench: {message}", file=sys.stderr, flush=True)
    except BrokenPipeError:  # stderr went into the same pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    return code
