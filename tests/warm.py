"""The program in a process of its own that begins with all modules imported: they take most of a start.

So do the processes of the package's own that such a program starts, its worker above all. Python is started anew for
them where a test asks for it, and where their environment has other settings that imports ask for.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import inspect
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from time import monotonic, sleep
from typing import Any

LIMIT_S = 120
_PR_SET_CHILD_SUBREAPER = 36
_FEW_FILES = 100
"""More than a process has open when it starts another."""
_READ_LATE = ("GIT_", "SMEMBENCH_", "PYTHONPATH")
"""Settings that no import asks for, once the path has its folders."""
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


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
        forks: bool = True,
    ) -> Forked:
        """Begin what ``python -m smembench`` does with these arguments; it is killed after LIMIT_S.

        Args:
            arguments, cwd, env: of the command.
            session: it has a session, and so a process group, of its own.
            deaf: it ignores Ctrl-C, as a shell's background jobs do.
            forks: processes of the package's own that it starts are forked, too, from one more child that it has.
        """
        assert self._server.stdin is not None
        folder = tempfile.mkdtemp()
        outputs = [str(Path(folder, name)) for name in ("out", "err")]
        how = {"session": session, "deaf": deaf, "forks": forks}
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
    ready_context().typing_context.refresh()


def _become(
    arguments: list[str],
    cwd: str,
    env: dict[str, str],
    outputs: list[str],
    *,
    session: bool,
    deaf: bool,
    forks: bool,
) -> None:
    """Be the program."""
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
    if forks:
        _fork_children()
    sys.argv = ["smembench", *arguments]
    sys.path[0] = cwd
    _run(lambda: runpy.run_module("smembench", run_name="__main__", alter_sys=True))


def _run(program: Callable[[], object]) -> None:
    """Run a program, and end without what Python tears down at its end: that takes longer than most commands."""
    code: object = 1
    try:
        program()
        code = 0
    except SystemExit as left:
        code = 0 if left.code is None else left.code
        if not isinstance(code, int):
            print(code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


def _fork_children() -> None:
    """Have this process's children that run a module of the package forked by one that has run nothing yet."""
    from smembench.model import child

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # whom another process forks and leaves is this one's child
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    this, turn = os.getpid(), threading.Lock()
    if os.fork() == 0:
        ours.close()
        _fork_for(this, theirs)
    theirs.close()
    began_with, begin = dict(os.environ), subprocess.Popen._execute_child  # type: ignore[attr-defined]
    parameters = inspect.signature(begin)

    def execute_child(popen: Any, *values: Any) -> None:
        given = parameters.bind(popen, *values).arguments
        command, env = given["args"], dict(os.environ if given["env"] is None else given["env"])
        others = {name for name in {*env, *began_with} if env.get(name) != began_with.get(name)}
        anew = os.getpid() != this or not all(name.startswith(_READ_LATE) for name in others)
        if anew or isinstance(command, str) or child.__file__ not in command:
            begin(popen, *values)
            return
        module = command.index(child.__file__) + 1
        streams = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        passed = sorted(given["pass_fds"])
        request = {
            "arguments": command[module:],
            "cwd": str(given["cwd"] or Path.cwd()),
            "env": env,
            "numbers": [0, 1, 2, *passed],
            "session": given["start_new_session"],
            "deaf": signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
        }
        opened = [number if fd == -1 else fd for number, fd in enumerate(streams)]
        with turn:
            socket.send_fds(ours, [json.dumps(request).encode()], [*opened, *passed])
            popen.pid = int(ours.recv(32))
        popen._child_created = True
        popen._close_pipe_fds(*(given[name] for name in _PIPES))

    subprocess.Popen._execute_child = execute_child  # type: ignore[attr-defined]


def _fork_for(parent: int, requests: socket.socket) -> None:
    """Fork processes that become children of ``parent``, until it ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while True:
        message, fds, _, _ = socket.recv_fds(requests, 2**20, _FEW_FILES)
        if not message:
            os._exit(0)
        reads, writes = os.pipe()
        between = os.fork()
        if between == 0:
            if pid := os.fork():
                os.write(writes, str(pid).encode())
                os._exit(0)
            until = monotonic() + 10
            while os.getppid() != parent:
                if monotonic() > until:  # it was killed
                    os._exit(1)
                sleep(0.0005)
            _become_child(fds, **json.loads(message))
        os.waitpid(between, 0)
        requests.send(os.read(reads, 32))
        for fd in (reads, writes, *fds):
            os.close(fd)


def _become_child(
    fds: list[int],
    arguments: list[str],
    cwd: str,
    env: dict[str, str],
    numbers: list[int],
    *,
    session: bool,
    deaf: bool,
) -> None:
    """Be a process that the package starts, with these files open under these numbers."""
    from smembench.model import child

    above = [fcntl.fcntl(fd, fcntl.F_DUPFD, _FEW_FILES) for fd in fds]
    os.closerange(3, _FEW_FILES)
    for fd, number in zip(above, numbers, strict=True):
        os.dup2(fd, number)
        os.close(fd)
    if session:
        os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN if deaf else signal.default_int_handler)
    before, now = (each.get("PYTHONPATH", "").split(os.pathsep) for each in (os.environ, env))
    sys.path[1:1] = [path for path in now if path and path not in before]
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    if arguments[0] == "smembench":
        _fork_children()
        sys.path[0] = cwd
    else:
        del sys.path[0]
    sys.modules.pop(arguments[0], None)  # runpy warns of modules that were imported already
    sys.argv = [child.__file__, *arguments]
    _run(lambda: runpy.run_path(child.__file__, run_name="__main__"))


if __name__ == "__main__":
    _serve()
