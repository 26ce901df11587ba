"""The program in a process of its own that begins with all modules imported: they take most of a start."""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from time import monotonic

LIMIT_S = 120


class WarmPython:
    """A Python that forks for every command; each has its own output, directory, environment and exit code."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0
        )
        self._codes: dict[int, int] = {}
        self._begun = b""

    def start(
        self,
        arguments: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        *,
        session: bool = False,
        deaf: bool = False,
    ) -> Forked:
        """Begin what ``python -m smembench`` does with these arguments; it is killed after LIMIT_S.

        Args:
            arguments, cwd, env: of the command.
            session: it has a session, and so a process group, of its own.
            deaf: it ignores Ctrl-C, as a shell's background jobs do.
        """
        assert self._server.stdin is not None
        folder = tempfile.mkdtemp()
        outputs = [str(Path(folder, name)) for name in ("out", "err")]
        how = {"session": session, "deaf": deaf}
        request = {"arguments": arguments, "cwd": str(cwd), "env": dict(env), "outputs": outputs, **how}
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        while not (begun := self._next(LIMIT_S)):
            assert begun is not None, "the warm Python does not answer"
        return Forked(self, begun, Path(folder), arguments)

    def run(self, arguments: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """The same to its end."""
        process = self.start(arguments, cwd, env)
        out, err = process.communicate()
        assert process.returncode is not None
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def code(self, pid: int, timeout: float | None) -> int | None:
        """The exit code of a process when it has ended; None after a timeout."""
        end = None if timeout is None else monotonic() + timeout
        while pid not in self._codes and (end is None or monotonic() < end):
            self._next(None if end is None else max(end - monotonic(), 0))
        return self._codes.get(pid)

    def _next(self, timeout: float | None) -> int | None:
        """The id of the next process that begins, 0 for one that has ended; None after a timeout."""
        answers = self._server.stdout
        assert answers is not None
        while b"\n" not in self._begun:
            if not select.select([answers], [], [], timeout)[0]:
                return None
            more = answers.read(4096)
            assert more, "the warm Python has ended"
            self._begun += more
        line, _, self._begun = self._begun.partition(b"\n")
        pid, *code = map(int, line.split())
        if not code:
            self._codes.pop(pid, None)  # of an earlier process with the number
            return pid
        self._codes[pid] = code[0]
        return 0

    def close(self) -> None:
        """End it."""
        self._server.communicate()


class Forked:
    """A process that a ``WarmPython`` forked, with what the tests use of ``subprocess.Popen``."""

    def __init__(self, warm: WarmPython, pid: int, folder: Path, arguments: Sequence[str]) -> None:
        self._warm, self._folder = warm, folder
        self.args, self.pid = arguments, pid
        self.returncode: int | None = None

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it printed, and its errors, once it has ended."""
        self.returncode = self._warm.code(self.pid, timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(list(self.args), timeout or 0)
        paths = [self._folder / name for name in ("out", "err")]
        out, err = (path.read_text(encoding="utf-8") for path in paths)
        for path in paths:
            path.unlink()
        self._folder.rmdir()
        return out, err

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        self.returncode = self._warm.code(self.pid, 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self._warm.code(self.pid, 0) is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


def _serve() -> None:
    import smembench

    for module in ("numba.cuda", "cuda.core", "pandas", "typer", "rich.progress"):
        import_module(module)
    for result in walk_packages(smembench.__path__, "smembench."):
        if not result.name.endswith("__main__"):
            import_module(result.name)
    _ready_compilers()
    gc.collect()
    gc.freeze()  # or a child's first collection would touch, and so copy, all of it
    running: dict[int, int] = {}  # by what becomes readable when a process ends
    while True:
        for ready in select.select([0, *running], [], [])[0]:
            if ready == 0:
                if not (line := sys.stdin.readline()):
                    return
                child = os.fork()
                if child == 0:
                    _become(**json.loads(line))
                running[os.pidfd_open(child)] = child
                print(child, flush=True)
            else:
                os.close(ready)
                child, status = os.waitpid(running.pop(ready), 0)
                print(child, os.waitstatus_to_exitcode(status), flush=True)


def _ready_compilers() -> None:
    """Have Numba import what it compiles with, for processors and for GPUs: it does when it first compiles."""
    from numba.core.registry import cpu_target

    from smembench.toolchains.nvvm import ready_context

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    with suppress(ImportError):  # without numba-cuda
        ready_context().typing_context.refresh()


def _become(
    arguments: list[str],
    cwd: str,
    env: dict[str, str],
    outputs: list[str],
    *,
    session: bool,
    deaf: bool,
) -> None:
    """Be the program, and end without what Python tears down at its end: that takes longer than most commands."""
    for descriptor, path in enumerate([os.devnull, *outputs]):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, descriptor)
        os.close(opened)
    if session:
        os.setsid()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    signal.alarm(LIMIT_S)
    signal.signal(signal.SIGINT, signal.SIG_IGN if deaf else signal.default_int_handler)  # whatever the tests do
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
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    _serve()
