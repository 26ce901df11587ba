"""``smembench transpose``, ``matmul`` and ``access``: one sweep from flags."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from smembench.cli import options
from smembench.cli.options import Running, Sampling, takes

_LISTS = "a number, a list or a range: 512,1024:8192:*2"


@takes(sampling=Sampling, running=Running)
def transpose(
    *,
    n: Annotated[
        str | None, typer.Option("--n", metavar="N,…", help=f"Side of a square matrix, {_LISTS}. (default: 4096)")
    ] = None,
    nx: Annotated[str | None, typer.Option("--nx", metavar="N,…", help="Columns.")] = None,
    ny: Annotated[str | None, typer.Option("--ny", metavar="N,…", help="Rows.")] = None,
    block: options.Blocks = None,
    pad: Annotated[
        bool | None,
        typer.Option("--pad/--no-pad", help="Of the shared-memory kernels only the padded, or only the unpadded."),
    ] = None,
    pad_width: Annotated[
        str | None, typer.Option("--pad-width", metavar="N,…", help="Extra columns of a padded tile. (default: 1)")
    ] = None,
    kernel: options.Kernels = None,
    dtype: options.Dtypes = None,
    device: options.Devices = None,
    cache: options.Cache = None,
    compiler: options.Compilers = None,
    peers: options.Peers = None,
    sampling: Sampling,
    running: Running,
) -> None:
    """Time the transpose kernels: copyGmem, naiveGmem, transposeSmem, transposeSmemPad.

    Every kernel is checked bit for bit before it is timed, and memcpy is measured beside them as the ceiling.
    Lists and ranges multiply.

    Examples:

      smembench transpose --pad

      smembench transpose --n 1024:8192:*2 --block 32x32,16x16 --csv transpose.csv

      smembench transpose --nx 4000 --ny 3000 --dtype float64 --cache warm,cold
    """
    sweep = options.given(
        n=n,
        nx=nx,
        ny=ny,
        block=block,
        pad=pad,
        pad_width=pad_width,
        kernel=kernel,
        dtype=dtype,
        device=device,
        cache=cache,
        compiler=compiler,
        peers=peers,
    )
    _measure("transpose", sweep, sampling, running)


@takes(sampling=Sampling, running=Running)
def matmul(
    *,
    n: Annotated[
        str | None,
        typer.Option("--n", metavar="N,…", help=f"Side, or columns of B and C: {_LISTS}. (default: 1024)"),
    ] = None,
    m: Annotated[str | None, typer.Option("--m", metavar="N,…", help="Rows of A and C. (default: n)")] = None,
    k: Annotated[
        str | None, typer.Option("--k", metavar="N,…", help="Columns of A and rows of B. (default: n)")
    ] = None,
    stride: Annotated[
        str | None,
        typer.Option(
            "--stride",
            metavar="N,…",
            help="Row stride of A, B and C in elements, as in a wider matrix. (default: dense)",
        ),
    ] = None,
    block: options.Blocks = None,
    kernel: options.Kernels = None,
    dtype: options.Dtypes = None,
    device: options.Devices = None,
    cache: options.Cache = None,
    compiler: options.Compilers = None,
    peers: options.Peers = None,
    sampling: Sampling,
    running: Running,
) -> None:
    """Time matrix multiplication: on the CPU, naive, and tiled through shared memory.

    Every result is checked against float64 before it is timed. The CPU's triple loop runs on any device, as
    the baseline of the speed-ups.

    Examples:

      smembench matmul --n 1024

      smembench matmul --n 1024:4096:*2 --kernel naive,tiled --csv matmul.csv

      smembench matmul --m 1000 --k 500 --n 2000 --dtype float64

      smembench matmul --n 1024 --stride 4096
    """
    sweep = options.given(
        n=n,
        m=m,
        k=k,
        stride=stride,
        block=block,
        kernel=kernel,
        dtype=dtype,
        device=device,
        cache=cache,
        compiler=compiler,
        peers=peers,
    )
    _measure("matmul", sweep, sampling, running)


@takes(sampling=Sampling, running=Running)
def access(
    *,
    passes: Annotated[
        str | None,
        typer.Option("--passes", metavar="N,…", help="Times each value goes through shared memory. (default: 256)"),
    ] = None,
    n: Annotated[
        str | None,
        typer.Option("--n", metavar="N,…", help="Threads. (default: 24576 for each multiprocessor of the GPU)"),
    ] = None,
    block: Annotated[
        str | None,
        typer.Option(
            "--block", metavar="XxY,…", help="Block dimensions in threads, the tile's as well. (default: 32x32,32x16)"
        ),
    ] = None,
    stride: Annotated[
        str | None,
        typer.Option(
            "--stride", metavar="N,…", help="Elements from lane to lane, of the kernel strided. (default: 1:32)"
        ),
    ] = None,
    pad: Annotated[
        bool | None, typer.Option("--pad/--no-pad", help="Of the kernels with a tile only the padded, or unpadded.")
    ] = None,
    pad_width: Annotated[
        str | None, typer.Option("--pad-width", metavar="N,…", help="Extra columns of a padded tile. (default: 1)")
    ] = None,
    kernel: options.Kernels = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", metavar="NAME,…", help="Element types. (default: int32)")
    ] = None,
    device: options.Devices = None,
    sampling: Sampling,
    running: Running,
) -> None:
    """Time access patterns of shared memory, in bytes a clock of the 128 that the banks of a multiprocessor deliver.

    The four patterns on a tile, setRowReadCol with padding, and parallelAccess, serialAccess and broadcastAccess; by
    name each pattern as …Dyn (dynamic shared memory), …Pad and …DynPad too, and with --stride alone the kernel strided.
    Every thread stores and loads 32 bytes a pass, and only that counts; the sums are checked bit for bit. There is no
    CPU form; smembench explain predicts the conflicts without a GPU.

    Examples:

      smembench access

      smembench access --stride 1:32 --csv staircase.csv

      smembench access --kernel setRowReadCol,setRowReadColPad --block 32x32,32x16,16x16 --pad-width 1,2

      smembench access --kernel setColReadCol,setColReadColDynPad --dtype int32,int64
    """
    if stride is not None and kernel is None:
        kernel = "strided"
    sweep = options.given(
        passes=passes,
        n=n,
        block=block,
        stride=stride,
        pad=pad,
        pad_width=pad_width,
        kernel=kernel,
        dtype=dtype,
        device=device,
    )
    _measure("access", sweep, sampling, running)


def _measure(problem: str, sweep: dict[str, Any], sampling: Sampling, running: Running) -> None:
    from smembench.cli.measure import measure
    from smembench.run.config import from_flags

    measure(from_flags({"name": problem, **sampling.config(), "sweep": [{"problem": problem, **sweep}]}), running)
