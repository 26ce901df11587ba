"""``smembench ladder``: from the naive kernel to the hardware's limit, one idea per step."""

from __future__ import annotations

from typing import Annotated

import typer

from smembench.cli import options
from smembench.cli.options import Running, Sampling, takes


@takes(sampling=Sampling, running=Running)
def ladder(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="Whose ladder: transpose, matmul and others.")],
    *,
    n: Annotated[
        str | None,
        typer.Option(metavar="N,…", help="Side of square matrices, or elements. (default: the problem's)"),
    ] = None,
    dtype: options.Dtypes = None,
    device: options.Devices = None,
    cache: options.Cache = None,
    peers: options.Peers = None,
    sampling: Sampling,
    running: Running,
) -> None:
    """Climb from the naive kernel to the hardware's limit, one idea per step, in one interleaved run.

    Each step is shown with its fastest block: the time, the rate, its share of the limit (memcpy for transposes, the
    arithmetic peak for products), the gain over the previous step, and what changes.

    Examples:

      smembench ladder transpose
      smembench ladder transpose --n 4096,16384 --dtype float32,float16
      smembench ladder matmul --n 4096 --csv ladder.csv
    """
    from smembench.cli.measure import measure
    from smembench.run.config import from_flags
    from smembench.studies.ladder import sweeps
    from smembench.views.ladder import ladder as draw

    climbed = sweeps(problem, device or "auto", n=n, dtype=dtype, cache=cache, peers=peers)
    measure(from_flags({"name": f"ladder-{problem}", **sampling.config(), "sweep": climbed}), running, draw=draw)
