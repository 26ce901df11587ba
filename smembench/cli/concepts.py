"""``smembench constant`` and ``smembench transfer``: the documents' other concepts, each a sweep or two from flags."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from smembench.cli import options
from smembench.cli.options import Running, Sampling, takes


@takes(sampling=Sampling, running=Running)
def constant(
    *,
    n: Annotated[
        str | None, typer.Option("--n", metavar="N,…", help="Elements of the output. (default: 4194304)")
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(
            "--block", metavar="XxY,…", help="Block dimensions in threads, counted in a row. (default: 256x1)"
        ),
    ] = None,
    kernel: options.Kernels = None,
    dtype: options.Dtypes = None,
    device: options.Devices = None,
    cache: options.Cache = None,
    compiler: options.Compilers = None,
    sampling: Sampling,
    running: Running,
) -> None:
    """Time a 1D stencil whose coefficients are in global, shared or constant memory.

    Uniform: the lanes of a warp read the same coefficient at a time, a broadcast. Diverging: they read nine different
    ones, which the constant cache serves one after the other. The work is the same. The host copies the coefficients
    to constant memory before the launch, as cudaMemcpyToSymbol does. On the CPU one plain stencil runs.

    Examples:

      smembench constant

      smembench constant --kernel constantUniform,constantDiverging --dtype float32,float64

      smembench constant --compiler numba,nvrtc

      smembench constant --n 1048576:16777216:*4 --block 128x1,256x1 --csv constant.csv
    """
    sweep = options.given(n=n, block=block, kernel=kernel, dtype=dtype, device=device, cache=cache, compiler=compiler)
    _measure("constant", [{"problem": "constant", **sweep}], sampling, running)


@takes(sampling=Sampling, running=Running)
def transfer(
    *,
    bytes_: Annotated[
        str | None,
        typer.Option(
            "--bytes",
            metavar="N,…",
            help="Bytes of the arrays copied, a number, a list or a range. (default: 1024:1073741824:*32)",
        ),
    ] = None,
    n: Annotated[
        str | None, typer.Option("--n", metavar="N,…", help="Elements that one is added to. (default: 100000)")
    ] = None,
    block: Annotated[
        str | None,
        typer.Option("--block", metavar="XxY,…", help="Threads of a block of the round trip. (default: 128x1)"),
    ] = None,
    kernel: options.Kernels = None,
    device: options.Devices = None,
    sampling: Sampling,
    running: Running,
) -> None:
    """Time copies between host and device, and the documents' add-one with both copies against the CPU's loop.

    Host memory is pageable, as malloc and NumPy make it, or page-locked (pinned). Times are the host's, from the call
    until the copy is done. Without a GPU the host's own copy and the loop run.

    Examples:

      smembench transfer

      smembench transfer --bytes 1024:1073741824:*4 --kernel h2dPageable,h2dPinned

      smembench transfer --kernel addOne,addOnePinned --n 1000:100000000:*10 --csv add_one.csv
    """
    copies = options.given(bytes=bytes_)
    round_trip = options.given(n=n, block=block)
    sweeps = [{"problem": "transfer", **copies}, {"problem": "roundtrip", **round_trip}]
    if kernel is not None:
        sweeps = _with_kernels(sweeps, kernel)
    _measure("transfer", [sweep | options.given(device=device) for sweep in sweeps], sampling, running)


def _with_kernels(sweeps: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """The sweeps that have some of the kernels, each with its own.

    Raises:
        UsageError: for a kernel that none of them has, and for sizes and blocks of a sweep that has no kernel left.
    """
    from smembench.kernels import registry
    from smembench.model.errors import UsageError
    from smembench.run.axes import parse_names

    names = {sweep["problem"]: registry.names(sweep["problem"]) for sweep in sweeps}
    known = [name for of_problem in names.values() for name in of_problem]
    chosen = parse_names(text, known, name="--kernel", what="transfer kernel")
    kept = []
    for sweep in sweeps:
        of_problem = names[sweep["problem"]]
        if own := [name for name in chosen if name in of_problem]:
            kept.append({**sweep, "kernel": own})
        elif stray := [f"--{key} {value}" for key, value in sweep.items() if key != "problem"]:
            raise UsageError(f"{stray[0]}: is for {', '.join(of_problem)}, and --kernel names none of them")
    return kept


def _measure(name: str, sweeps: list[dict[str, Any]], sampling: Sampling, running: Running) -> None:
    from smembench.cli.measure import measure
    from smembench.run.config import from_flags

    measure(from_flags({"name": name, **sampling.config(), "sweep": sweeps}), running)
