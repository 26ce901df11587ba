"""A long count under ``ncu``, watched launch by launch; Ctrl-C ends it and keeps what was counted."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen

from smembench.explain.ncu import command, complete, parse

_LAUNCHED = "launched "


def say_launched(number: int) -> None:
    """In the child: so many launches are done."""
    print(f"{_LAUNCHED}{number}", flush=True)


def watched(
    child: Sequence[str],
    metrics: Sequence[str],
    stop: Path,
    launched: Callable[[int], None],
    *,
    launches: int,
) -> tuple[dict[str, list[float]], bool]:
    """As ``ncu.counted``, of a child that says what it has launched; also whether Ctrl-C cut it short.

    Args:
        stop: a file that is made on Ctrl-C; the child ends when it is there. Ctrl-C again ends both at once.
        launched: called with the number of launches that are done.

    Raises:
        UsageError: as ``ncu.counted``, unless it was cut short.
    """
    lines: list[str] = []
    run = command(child, metrics, cache_control="none")
    with Popen(run, stdout=PIPE, stderr=STDOUT, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        ended = False
        while not ended:
            try:
                for line in process.stdout:
                    if line.startswith(_LAUNCHED):
                        launched(int(line.removeprefix(_LAUNCHED)))
                    else:
                        lines.append(line)
                ended = True
            except KeyboardInterrupt:
                if stop.exists():
                    os.killpg(process.pid, signal.SIGKILL)
                    raise
                stop.touch()
    output = "".join(lines)
    if stop.exists():
        return parse(output), True
    return complete(output, metrics, launches=launches, messages=output), False
