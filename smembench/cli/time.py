"""``smembench time``: kernels of the user's, verified and timed as those of the package are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from smembench.cli import options
from smembench.cli.explain_options import Launch
from smembench.cli.options import Running, Sampling
from smembench.cli.signature import argument, flag, group, option, takes
from smembench.model.errors import DeviceUnavailable, UsageError

if TYPE_CHECKING:
    from smembench.model.case import Case


@group()
class TimedLaunch(Launch):
    """Launch options for all kernels; expressions may name sizes."""

    grid: str | None = option("XxYxZ", "Blocks: 128x128, or 'cdiv(n, 32), n//8'.")
    block: str | None = option("XxYxZ", "Threads per block. (default: Triton's by num_warps)")
    arg: list[str] | None = option(
        "ARG",
        "An argument, in the kernel's order: float32\\[n,n], n, 0.5, 'float32 0.5', x.npy, 'bfloat16 x.npy', and for "
        "Triton BLOCK=128.",
    )


@group("Launch attributes")
class Attributes:
    """Attributes of the launch, and of the code."""

    cooperative: bool = flag("All blocks are resident at once.")
    carveout: int | None = option("PERCENT", "Share of L1 and shared memory that is shared memory.", min=0, max=100)
    max_registers: int | None = option("N", "Maximum registers per thread, for .cu files.", min=16, max=255)

    @property
    def options(self) -> list[str]:
        """The options of the compiler."""
        return [f"--maxrregcount={self.max_registers}"] if self.max_registers else []


@group()
class Checks:
    """Outputs of kernels and their reference. Arguments go by their number from 0, or by name."""

    out: list[str] | None = option("ARG", "An array that is only written. (default: found by two poisoned launches)")
    inout: list[str] | None = option("ARG", "An array restored before each launch.")
    reset: list[str] | None = option("ARG=VALUE", "An array filled before each launch.")
    scratch: list[str] | None = option("ARG", "An array to work in, poisoned at first, which is not checked.")
    check: str | None = option(
        "TARGET",
        "path.py:function, which gets NumPy's arrays and returns or writes the outputs; another kernel; or none.",
    )


@group("Tolerances")
class Tolerances:
    """Tolerances of outputs against their reference."""

    rtol: float | None = option("X", "Relative tolerance. (default: by the type, and --flops as the length of sums)")
    atol: float | None = option("X", "Absolute tolerance. (default: rtol of the outputs' root mean square)")


@group()
class Counts:
    """Sizes."""

    sweep: list[str] | None = option("NAME=N,…", "A size for expressions: n=1024,4096 or n=1k:8k:*2.")
    tune: list[str] | None = option("NAME=N,…", "Find the fastest values of macros, or of arguments by name.")


@group("Rates and search")
class Rates:
    """Amounts from which rates are computed, and the values to try."""

    bytes: str | None = option("N", "Bytes moved per launch; bytes0 is the first array's. (default: each array once)")
    flops: str | None = option("N", "Floating-point operations per launch, such as 2*n*n*n.")
    where: str | None = option("EXPR", "Constraint on sizes and tuned values: 'BLOCK * TM <= 256'.")


@takes(
    launch=TimedLaunch,
    attributes=Attributes,
    checks=Checks,
    counts=Counts,
    tolerances=Tolerances,
    rates=Rates,
    sampling=Sampling,
    running=Running,
)
def time(
    kernels: list[str] = argument(
        "KERNEL…",
        "path.cu:name, .ptx, .cubin (which has no types: write 'float32 2' for a float), or .py: Numba, Triton, CuPy "
        "or any function that enqueues work.",
        default=...,
    ),
    *,
    device: str | None = options.DEVICES,
    cache: str | None = options.CACHE,
    launch: TimedLaunch,
    attributes: Attributes,
    checks: Checks,
    counts: Counts,
    tolerances: Tolerances,
    rates: Rates,
    sampling: Sampling,
    running: Running,
) -> None:
    r"""Time kernels of your own, with arguments as explain takes them.

    Arrays are random and new in each round, outputs poisoned, and all lie between guards. The first launch of each
    round is checked, and the last timed one of the first round. Kernels are measured in turns, each launch by itself
    in a CUDA graph. An array that is written counts as an output; with --out only those named there do, and others
    are inputs, which no kernel may write, unless --inout, --reset or --scratch names them.

    A function gets tensors if its file imports torch, CuPy's arrays if it imports cupy, else arrays with a CUDA array
    interface; the stream is current in these libraries, and is passed as `stream` to a function that takes that. Of
    one that enqueues several kernels all are timed together, and a note tells the sum of their times and the gaps
    between them.

    Examples:

      smembench time k.cu:add --grid 8 --block 128 --arg float32[1024] --inout 0
      smembench time k.cu:one k.cu:two --sweep n=1k:1m:*4 \
          --grid "cdiv(n, 256)" --block 256 --arg float32\[n] --arg n
      smembench time k.py:softmax --grid 64 --arg float32[64,999] \
          --arg float32[64,999] --arg 999 --arg BLOCK=1024
    """
    from smembench.cli.measure import measure
    from smembench.cli.tune import find_fastest
    from smembench.run.config import from_flags
    from smembench.run.launch_cases import launch_cases
    from smembench.run.launch_sweep import LaunchSweep
    from smembench.studies.tune import launches

    keys: dict[str, Any] = {
        **{name: getattr(launch, name) for name in ("grid", "block", "cluster", "arg", "shared_bytes")},
        "carveout": attributes.carveout,
        "option": [*launch.options, *attributes.options] or None,
        "cooperative": attributes.cooperative or None,
        **vars(checks),
        **vars(tolerances),
        **vars(rates),
        "sizes": _sizes(counts.sweep or (), "--sweep") or None,
        "tune": _sizes(counts.tune or (), "--tune") or None,
        "device": device,
        "cache": cache,
    }
    sweep = {"problem": "time", "kernel": kernels, **options.given(**keys)}
    config = from_flags({"name": "time", **sampling.config(), "sweep": [sweep]})
    (swept,) = config.sweep
    assert isinstance(swept, LaunchSweep)
    cases = [*launch_cases(swept, "cuda:0")]  # bad usage is reported first, with a GPU and without
    try:
        if counts.tune and not running.dry_run:
            running.check_nvtx("--tune")
            find_fastest(partial(launches, swept), sampling, running)
        else:
            measure(config, running)
    except DeviceUnavailable:
        if not (running.json or running.export or running.dry_run):
            _explain(cases)
        raise


def _explain(cases: Sequence[Case]) -> None:
    """Print what a trace says about the first case of each kernel, where no GPU can time it."""
    from smembench.explain.any_kernel import explain_launch
    from smembench.kernels.time.problem import launch_of
    from smembench.model.groups import grouped
    from smembench.views.console import say, stderr, stdout
    from smembench.views.explain import explanation, print_explanation
    from smembench.views.explain_cure import cure_lines

    for kernel, (case, *_) in grouped(cases, lambda case: case.kernel).items():
        try:
            explained = explain_launch(launch_of(case))
        except UsageError as error:
            say(stderr, f"{kernel}: not explained: {error}")
        else:
            print_explanation(stdout, explained, explanation(explained), cure_lines(explained))


def _sizes(texts: Sequence[str], option: str) -> dict[str, str]:
    """Sizes by name.

    Raises:
        UsageError: for text that is not NAME=VALUES.
    """
    sizes = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"{option} {text!r}: write a name and its values, such as n=1024,4096 or n=1k:8k:*2")
        sizes[name] = values
    return sizes
