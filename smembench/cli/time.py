"""``smembench time``: kernels of the user's, verified and timed as those of the package are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from smembench.cli import options
from smembench.cli.explain_options import Launch
from smembench.cli.options import Running, Sampling
from smembench.cli.signature import takes
from smembench.model.errors import DeviceUnavailable, UsageError

if TYPE_CHECKING:
    from smembench.model.case import Case


@dataclass(frozen=True, kw_only=True)
class TimedLaunch(Launch):
    """How kernels are launched, all alike."""

    panel: ClassVar = "Launch"
    cooperative: Annotated[bool, typer.Option("--cooperative", help="All blocks are resident at once.")] = False
    carveout: Annotated[
        int | None,
        typer.Option(min=0, max=100, metavar="PERCENT", help="Share of L1 and shared memory that is shared memory."),
    ] = None
    max_registers: Annotated[
        int | None, typer.Option(min=16, max=255, metavar="N", help="Most registers per thread of a .cu file.")
    ] = None

    @property
    def options(self) -> list[str]:
        """The options of the compiler."""
        return [*super().options, *([f"--maxrregcount={self.max_registers}"] if self.max_registers else [])]


@dataclass(frozen=True, kw_only=True)
class Checks:
    """What kernels write, and what it is checked against. Arguments go by their number from 0, or by name."""

    panel: ClassVar = "Outputs and check"
    out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARG",
            help="An array that is written and not read. (default: found by two launches on different poison)",
        ),
    ] = None
    inout: Annotated[
        list[str] | None,
        typer.Option(metavar="ARG", help="An array that is read and written: restored before each launch."),
    ] = None
    reset: Annotated[
        list[str] | None,
        typer.Option(metavar="ARG=VALUE", help="An array that each launch finds filled with a number, as counters."),
    ] = None
    check: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="path.py:function, which gets the arguments as NumPy's arrays and returns the outputs or writes to "
            "them; another kernel, such as path.cu:name; or none.",
        ),
    ] = None
    rtol: Annotated[
        float | None,
        typer.Option(metavar="X", help="Relative tolerance. (default: by the type, and --flops as the length of sums)"),
    ] = None
    atol: Annotated[
        float | None,
        typer.Option(metavar="X", help="Absolute tolerance. (default: rtol of the outputs' root mean square)"),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Sizes, and what rates are computed from."""

    panel: ClassVar = "Sizes and rates"
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N,…",
            help="A size that --grid, --block, --arg, --bytes and --flops may name: n=1024,4096 or n=1k:8k:*2.",
        ),
    ] = None
    tune: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N,…",
            help="Find the fastest values of macros of a .cu file, or of arguments by name: all are measured quickly, "
            "the best again. Expressions may name them.",
        ),
    ] = None
    where: Annotated[
        str | None, typer.Option(metavar="EXPR", help="What combinations have to meet: 'BLOCK * TM <= 256'.")
    ] = None
    bytes: Annotated[
        str | None,
        typer.Option(
            metavar="N", help="Bytes moved per launch; bytes0 is the first array's. (default: each array once)"
        ),
    ] = None
    flops: Annotated[str | None, typer.Option(metavar="N", help="Floating-point operations per launch: 2*n*n*n.")] = (
        None
    )


@takes(launch=TimedLaunch, checks=Checks, counts=Counts, sampling=Sampling, running=Running)
def time(
    kernels: Annotated[
        list[str],
        typer.Argument(
            metavar="KERNEL...",
            help="path.cu:name, path.ptx:name, path.cubin:name, or path.py:name of Numba, Triton, CuPy or any function "
            "that enqueues work; several are measured in turns.",
        ),
    ],
    *,
    device: options.Devices = None,
    cache: options.Cache = None,
    launch: TimedLaunch,
    checks: Checks,
    counts: Counts,
    sampling: Sampling,
    running: Running,
) -> None:
    r"""Time kernels of your own, with arguments as explain takes them.

    Arrays are random, new in each round, unless they are .npy files. Outputs are filled with a poison value before a
    launch, and all arrays lie between guards. The first launch of each round is checked, and the last timed one of the
    first round. Each launch is timed by itself, between two events in a CUDA graph; what it reads and writes is
    restored before it, outside of its time.

    A function gets tensors if its file imports torch, CuPy's arrays if it imports cupy, else arrays with a CUDA array
    interface; the stream is current in these libraries, and is passed as `stream` to a function that takes that.

    Examples:

      smembench time k.cu:transpose --grid 128x128 --block 32x32 --arg float32[4096,4096] --arg float32[4096,4096]
      smembench time k.cu:scale --sweep n=1k:1m:*4 --grid "cdiv(n, 256)" --block 256 --arg float32\[n] --arg n
      smembench time mine.cu:fast mine.cu:plain --grid 64 --block 256 --arg float32[65536] --inout 0 --check mine.py:ref
      smembench time mine.py:softmax --grid 64 --arg float32[64,999] --arg float32[64,999] --arg 999 --arg BLOCK=1024
    """
    from smembench.cli.measure import measure
    from smembench.cli.tune import find_fastest
    from smembench.run.config import from_flags
    from smembench.run.launch_cases import launch_cases
    from smembench.run.launch_sweep import LaunchSweep
    from smembench.studies.tune import launches

    keys: dict[str, Any] = {
        "grid": launch.grid,
        "block": launch.block,
        "cluster": launch.cluster,
        "arg": launch.arg,
        "shared_bytes": launch.shared_bytes,
        "carveout": launch.carveout,
        "option": launch.options or None,
        "cooperative": launch.cooperative or None,
        **vars(checks),
        "bytes": counts.bytes,
        "flops": counts.flops,
        "sizes": _sizes(counts.sweep or (), "--sweep") or None,
        "tune": _sizes(counts.tune or (), "--tune") or None,
        "where": counts.where,
        "device": device,
        "cache": cache,
    }
    sweep = {"problem": "time", "kernel": kernels, **options.given(**keys)}
    config = from_flags({"name": "time", **sampling.config(), "sweep": [sweep]})
    (swept,) = config.sweep
    assert isinstance(swept, LaunchSweep)
    cases = [*launch_cases(swept, "cuda:0")]  # wrong usage is told first, with a GPU and without
    try:
        if counts.tune and not running.dry_run:
            find_fastest(partial(launches, swept), sampling, running)
        else:
            measure(config, running)
    except DeviceUnavailable:
        _explain(cases)
        raise


def _explain(cases: Sequence[Case]) -> None:
    """Without a GPU, what a trace tells of the first case of each kernel."""
    from smembench.explain.any_kernel import explain_launch
    from smembench.kernels.time.problem import launch_of
    from smembench.model.groups import grouped
    from smembench.views.console import say, stderr, stdout
    from smembench.views.explain import explanation, print_explanation
    from smembench.views.explain_cure import cure_lines

    for kernel, (case, *_) in grouped(cases, lambda case: case.kernel).items():
        try:
            found = explain_launch(launch_of(case))
        except UsageError as error:
            say(stderr, f"{kernel}: not explained: {error}")
        else:
            print_explanation(stdout, found, explanation(found), cure_lines(found))


def _sizes(texts: Sequence[str], option: str) -> dict[str, str]:
    """Sizes by name.

    Raises:
        UsageError: for text that is none.
    """
    found = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"{option} {text!r}: write a name and its values, such as n=1024,4096 or n=1k:8k:*2")
        found[name] = values
    return found
