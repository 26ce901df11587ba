"""``smembench ladder``: from the naive kernel to the hardware's limit, one idea a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smembench.cli import options
from smembench.cli.options import Running, Sampling, takes
from smembench.model.errors import UsageError

if TYPE_CHECKING:
    from smembench.store.run import Run
    from smembench.views.sections import Section


@takes(sampling=Sampling, running=Running)
def ladder(
    problem: Annotated[str, typer.Argument(metavar="transpose|matmul", help="Whose ladder.")],
    *,
    n: Annotated[
        str | None,
        typer.Option(
            "--n", metavar="N,…", help="Side of square matrices: 512,1024:8192:*2. (default: 4096; matmul: 1024)"
        ),
    ] = None,
    dtype: options.Dtypes = None,
    device: options.Devices = None,
    cache: options.Cache = None,
    peers: options.Peers = None,
    sampling: Sampling,
    running: Running,
) -> None:
    """Climb from the naive kernel to the hardware's limit, one idea a step, all in one interleaved run.

    For each step, in the fastest of its blocks: the time, the rate, how near it is to the limit (memcpy for
    transposes, the arithmetic peak for products), the gain over the step before, and what changes.

    Examples:

      smembench ladder transpose

      smembench ladder transpose --n 4096,16384 --dtype float32,float16

      smembench ladder matmul --n 4096 --csv ladder.csv
    """
    from smembench.cli.measure import measure
    from smembench.run.axes import split, unknown
    from smembench.run.config import from_flags
    from smembench.studies.ladder import problems, steps

    if problem not in problems():
        raise UsageError(f"ladder {problem!r}: {unknown(problem, problems(), 'ladder')}")
    sweeps = [
        options.given(
            problem=problem,
            kernel=",".join(kernel.name for kernel in steps(problem, _kind(name))),
            device=name,
            n=n,
            dtype=dtype,
            cache=cache,
            peers=peers,
        )
        for name in split(device or "auto")
    ]
    config = from_flags({"name": f"ladder-{problem}", **sampling.config(), "sweep": sweeps})
    measure(config, running, draw=_climb)


def _kind(device: str) -> str:
    """The kind of device that a name stands for here: it decides which steps there are."""
    from smembench.devices.select import resolve

    try:
        ((name,), _) = resolve([device])
    except UsageError as error:
        raise UsageError(f"--device: {error}") from None
    return name.partition(":")[0]


def _climb(run: Run) -> list[Section]:
    from smembench.views.ladder import ladder as draw

    return draw(run)
