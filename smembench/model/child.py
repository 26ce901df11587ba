"""Processes of this package's own: they import this very package, and nothing from the working directory.

``python -m`` puts the working directory in front of Python's library, so that a file called statistics.py there would
be imported in place of the library's. Here only PYTHONPATH adds directories, as it does for the parent.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subprocess import CompletedProcess


def child_command(module: str, *arguments: object) -> list[str]:
    """The command line that runs a module of the package in a process of its own."""
    flags = ["-P", *["-E"] * sys.flags.ignore_environment, *["-s"] * sys.flags.no_user_site]
    return [sys.executable, *flags, __file__, module, *map(str, arguments)]


def module_command(module: str, *arguments: object) -> list[str]:
    """The command line that runs a module of another package, or of this one at another revision by PYTHONPATH."""
    return [sys.executable, "-P", "-m", module, *map(str, arguments)]


def captured(command: str | Sequence[str], **more: Any) -> CompletedProcess[str]:
    """Run a command to its end, a text by the shell, without input; what it prints is text. Ctrl-C reaches it, too."""
    from subprocess import DEVNULL, run

    ends: dict[str, Any] = {"stdin": DEVNULL, "capture_output": True, "text": True, "errors": "replace"}
    return run(command, shell=isinstance(command, str), check=False, **ends, **more)


def _main() -> None:
    """Import the package that this file lies in, wherever that is, and run one of its modules."""
    import gc
    import runpy
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    package = Path(__file__).resolve().parents[1]
    init = package / "__init__.py"
    spec = spec_from_file_location(package.name, init, submodule_search_locations=[str(package)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[package.name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[package.name])
    del sys.argv[0]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except Exception as error:
        from smembench.model.text import one_line, place

        sys.exit(f"smembench: {sys.argv[0]}: {one_line(error)} ({place(error)})")
    finally:
        if "triton" not in sys.modules:
            gc.freeze()  # as in smembench.__main__


if __name__ == "__main__":
    _main()
