"""The program in a process of its own that begins with all modules imported: they take most of a start."""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

LIMIT_S = 120


class WarmPython:
    """A Python that forks for every command; each has its own output, directory, environment and exit code."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def run(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """What ``python -m smembench`` does with these arguments; it is killed after LIMIT_S."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            outputs = [str(Path(folder, name)) for name in ("out", "err")]
            request = {"arguments": arguments, "cwd": str(cwd), "env": dict(env), "outputs": outputs}
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            out, err = (Path(path).read_text(encoding="utf-8") for path in outputs)
        return subprocess.CompletedProcess(arguments, code, out, err)

    def close(self) -> None:
        """End it."""
        self._server.communicate()


def _serve() -> None:
    import smembench

    for module in ("numba.cuda", "cuda.core", "pandas", "typer", "rich.progress"):
        import_module(module)
    for found in walk_packages(smembench.__path__, "smembench."):
        if not found.name.endswith("__main__"):
            import_module(found.name)
    gc.collect()
    gc.freeze()  # or a child's first collection would touch, and so copy, all of it
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(arguments: list[str], cwd: str, env: dict[str, str], outputs: list[str]) -> None:
    """Be the program, and end without what Python tears down at its end: that takes longer than most commands."""
    for descriptor, path in enumerate([os.devnull, *outputs]):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    signal.alarm(LIMIT_S)
    if encoding := env.get("PYTHONIOENCODING"):
        sys.stdout.reconfigure(encoding=encoding)  # type: ignore[union-attr]
        sys.stderr.reconfigure(encoding=encoding)  # type: ignore[union-attr]
    sys.argv = ["smembench", *arguments]
    sys.path[0] = cwd
    code: object = 1
    try:
        runpy.run_module("smembench", run_name="__main__", alter_sys=True)
    except SystemExit as left:
        code = left.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    _serve()
