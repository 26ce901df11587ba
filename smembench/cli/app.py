"""The Typer app and the process's exit code."""

from __future__ import annotations

import errno
import inspect
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import typer

from smembench.cli import baseline, fleet, lesson, problems
from smembench.cli.help import Command, Group, described, with_help_all
from smembench.cli.options import help_alone
from smembench.cli.signature import flag
from smembench.cli.streams import lost_output, open_streams
from smembench.model.errors import INTERNAL, Dropped, SmembenchError, UsageError
from smembench.model.interrupts import exit_code, ignore
from smembench.model.text import brief, one_line, place, visible
from smembench.model.version import VERSION
from smembench.toolchains.settings import settings

_SIGNALLED = 130
"""What Typer returns after Ctrl-C; a run that is interrupted while it measures raises its own error."""
_OF_THE_CALLER = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP),
    *(errno.EMFILE, errno.ENFILE, errno.EINVAL),
)
"""System errors for which a path or a limit of the caller is to blame."""
_TRACEBACK = "SMEMBENCH_TRACEBACK"


app = typer.Typer(
    name="smembench",
    cls=Group,
    help="Time CUDA kernels, verified first, and explain their times: bank conflicts, coalescing, races. "
    "The kernels are those of the package, or yours.",
    epilog="Exit codes: 0 all ok, 1 a failure, 2 wrong usage, 3 slower, 4 no such device, "
    "5 nothing could be compared, 70 an internal error, 130 interrupted, "
    "143 ended by SIGTERM.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"smembench {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: bool = flag("Print the version.", "--version", "-V", callback=_version, is_eager=True),
) -> None:
    from smembench.store.files import check_working_directory

    check_working_directory()
    help_alone(context)


_FILES = {
    "Measure": "time reproduce probe run tune",
    "Understand": "ladder compilers explain",
    "Compare and show": "show compare bisect report",
    "Every night": "history accept",
    "Setup": "list doctor",
}
"""The files with a command of their name, by the panels of the help and in its order."""


def _command(name: str) -> Callable[..., None]:
    module = import_module(f"smembench.cli.{name}")
    command: Callable[..., None] = getattr(module, name, None) or getattr(module, f"{name}_")
    return command


def _add(command: Callable[..., None], panel: str) -> None:
    name = command.__name__.rstrip("_")
    # --size is what others call --n; of copies it could mean --bytes, too.
    options = inspect.signature(command).parameters
    size = {"token_normalize_func": _n_for_size} if "n" in options and "bytes" not in options else {}
    register = app.command(
        name=name, help=described(command), rich_help_panel=panel, cls=Command, context_settings=size
    )
    register(with_help_all(command))


def _n_for_size(option: str) -> str:
    return "n" if option == "size" else option


for problem in problems.commands():
    _add(problem, "Measure")
for panel, names in _FILES.items():
    for name in names.split():
        _add(_command(name), panel)
for group in (baseline.app, fleet.app, lesson.app):
    for known in group.registered_commands:
        command = known.callback or _root
        known.cls, known.help, known.callback = Command, described(command), with_help_all(command)
app.add_typer(baseline.app, name="baseline", cls=Group, rich_help_panel="Every night")
app.add_typer(lesson.app, name="lesson", cls=Group, rich_help_panel="Understand")
app.add_typer(fleet.app, name="fleet", cls=Group, rich_help_panel="Measure")


def main() -> None:
    """Run the command line. Whatever fails is one line on stderr and an exit code."""
    try:
        open_streams()
        warnings.simplefilter("always", Dropped)
        warnings.showwarning = _warn
        code: Any = app(standalone_mode=False, prog_name=app.info.name)  # for python -m, too
        sys.stdout.flush()  # here, so that it is known whether anything is lost
        if code == _SIGNALLED:
            code = _say("interrupted", exit_code())
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        code = _failed(error)
    if not code and (why := lost_output()):
        code = _say(f"stdout {why}; what was to be printed is lost", 1)
    ignore()
    sys.exit(code if isinstance(code, int) else 0)


def _failed(error: BaseException) -> int:
    """Say what went wrong, in one line, and return the exit code."""
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return _say("interrupted", exit_code())
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0
    if isinstance(error, SmembenchError):
        return _say(error, error.exit_code)
    if isinstance(error, MemoryError):
        return _say("out of memory: close other programs, or raise the limit (ulimit -v)", 1)
    # Typer's own usage errors: its Click is vendored, so their class cannot be imported.
    if hasattr(error, "format_message"):
        command = getattr(getattr(error, "ctx", None), "command_path", app.info.name)
        return _say(f"{_message(error)} (see: {command} --help)", 2)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}", 2 if error.errno in _OF_THE_CALLER else 1)
    try:
        settings()
    except UsageError as damaged:  # settings with which Numba cannot be imported
        return _say(damaged, damaged.exit_code)
    if os.environ.get(_TRACEBACK):
        traceback.print_exception(error)
    return _say(f"internal error: {one_line(error)} ({place(error)}); {_TRACEBACK}=1 shows more", INTERNAL)


def _message(error: Any) -> str:
    """Typer's message, with the invalid value, which versions of Typer that use pydantic leave out."""
    text = str(error.format_message()).replace(": Value error, ", ": ", 1)
    if getattr(error, "option_name", "") == "--size":
        there = [option for one in error.ctx.command.params for option in one.opts if option in ("--bytes", "--n")]
        return f"No such option: --size{'; give ' if there else ''}{' or '.join(there)}"
    errors = getattr(error.__cause__, "errors", None)
    if errors is None:
        return text
    return text.replace("Invalid value", f"Invalid value {errors()[0]['input']!r}", 1)


_any_warning = warnings.showwarning


def _warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    if issubclass(category, Dropped):
        _warn_once(str(message))
    else:
        _any_warning(message, category, *where, **more)


@cache
def _warn_once(message: str) -> None:
    """Some commands read a run several times."""
    _say(message)


def _say(message: object, code: int = 0) -> int:
    print(f"smembench: {brief(visible(str(message)))}", file=sys.stderr, flush=True)
    return code
