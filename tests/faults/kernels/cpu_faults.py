"""CPU transposes that fail, each in its own way, and one that is slow enough to be interrupted."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.model.case import Case

Launch = Callable[[Any, Any, Any, Any], None]


def transpose(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    out[:] = inp.reshape(int(ny), int(nx)).T.ravel()


def sleepy(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    transpose(out, inp, nx, ny)
    time.sleep(0.05)


def hangs(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    while True:
        time.sleep(1)


def dies(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def raises(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    raise MemoryError("out of memory on purpose")


def wrong(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    out[:] = inp
    out[0] += 1


def outside(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    transpose(out, inp, nx, ny)
    out.base[-1] = 0


def erases(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    inp[:] = 0
    out[:] = 0


def meddles(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    transpose(out, inp, nx, ny)
    inp[-1] += 1


class Unspeakable(BaseException):
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise ValueError


def mumbles(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    raise Unspeakable


def babbles(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    raise ValueError("\x1b[31mred\udc80")


def signals(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    os.kill(os.getpid(), 40)


def tiring() -> Launch:
    """Right once; from then on the output stays as it was."""
    launches = count()

    def tires(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        if next(launches) == 0:
            transpose(out, inp, nx, ny)

    return tires


def faulty(name: str, summary: str, launch: Callable[[], Launch]) -> Kernel:
    def build(case: Case) -> HostFunction:
        return HostFunction(launch())

    return Kernel("transpose", name, "cpu", summary, build, computes="transpose", blocks=False)


KERNELS = [
    faulty("sleepy", "takes 50 ms per launch", lambda: sleepy),
    faulty("hangs", "never ends", lambda: hangs),
    faulty("dies", "takes its process with it", lambda: dies),
    faulty("raises", "raises", lambda: raises),
    faulty("wrong", "is off by one", lambda: wrong),
    faulty("outside", "writes beyond its output", lambda: outside),
    faulty("erases", "fills its input and its output with zeros", lambda: erases),
    faulty("meddles", "writes to its input once it has read it", lambda: meddles),
    replace(faulty("declares", "writes to its input, and says so", lambda: meddles), overwrites=True),
    faulty("mumbles", "raises what has no text", lambda: mumbles),
    faulty("babbles", "raises what no terminal can take", lambda: babbles),
    faulty("signals", "is ended by a signal without a name", lambda: signals),
    faulty("tires", "is right once", tiring),
]
