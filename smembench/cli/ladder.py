"""``smembench ladder``: from the naive kernel to the hardware's limit, one idea per step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smembench.cli import options
from smembench.cli.options import Running, Sampling
from smembench.cli.output import opened, printed
from smembench.cli.signature import flag, option, takes
from smembench.model.errors import UsageError

if TYPE_CHECKING:
    from smembench.studies.ladder.change import Change


@takes(sampling=Sampling, running=Running)
def ladder(
    problem: str = options.PROBLEM,
    *,
    n: str | None = options.SIDES,
    m: str | None = options.ROWS,
    k: str | None = options.DEPTHS,
    dtype: str | None = options.DTYPES,
    inputs: str | None = options.INPUTS,
    b_layout: str | None = options.B_LAYOUTS,
    device: str | None = options.DEVICES,
    cache: str | None = options.CACHE,
    peers: bool | None = options.PEERS,
    diff: str | None = option(
        "STEP", "Show what this step changes from the one before it; of two steps, the second from the first."
    ),
    full: bool = flag("With --diff: every line and every kind of instruction that changes."),
    run: Path | None = option("DIR", "With --diff: take the gain from a stored run; measure nothing."),
    sampling: Sampling,
    running: Running,
) -> None:
    """Time each step from the naive kernel to the hardware's limit.

    A step adds one idea; all are measured in one interleaved run. Each is shown with its fastest block: the time, the
    rate, its share of the limit (memcpy for transposes, the arithmetic peak for products), the gain over the best step
    before, and what changes. Products of few rows have steps of their own.

    --diff shows what one step changes: predicted wavefronts, sectors and occupancy, machine instructions, constants and
    the functions that the step is about, for which no GPU is needed, and the gain. With --json the gain is only taken
    from --run.

    Examples:

      smembench ladder transpose
      smembench ladder transpose --n 4096,16384 --dtype float32,float16
      smembench ladder matmul --n 4096 --export ladder.csv
      smembench ladder matmul --dtype bfloat16
      smembench ladder matmul --dtype bfloat16 --m 16 --n 8192 --k 8192
      smembench ladder transpose --diff transposeSmemPad
      smembench ladder matmul --diff unrolled,serpentine --run results/<run>
    """
    from smembench.cli.measure import measure
    from smembench.run.config import from_flags
    from smembench.studies.ladder.climb import sweeps
    from smembench.views.ladder import ladder as draw

    axes = options.given(n=n, m=m, k=k, dtype=dtype, inputs=inputs, b_layout=b_layout, cache=cache, peers=peers)
    device = device or "auto"
    if full and diff is None:
        raise UsageError("--full: goes with --diff")
    if diff is None:
        if run is not None:
            raise UsageError(f"--run {run}: goes with --diff; show {run} --ladder shows all steps of a stored run")
        climbed = sweeps(problem, device, **axes)
    else:
        changed = _show_change(problem, diff, axes, device, run, running, full=full)
        if changed is None:
            return
        climbed = changed.sweeps(device, **axes)
    measure(from_flags({"name": f"ladder-{problem}", **sampling.config(), "sweep": climbed}), running, draw=draw)


def _show_change(
    problem: str, step: str, axes: Mapping[str, Any], device: str, stored: Path | None, running: Running, *, full: bool
) -> Change | None:
    """Show what a step changes; returns it if its gain is to be measured."""
    from smembench.explain.prediction import predictor
    from smembench.run.axes import parse_ints
    from smembench.store.load import load
    from smembench.studies.explain import target
    from smembench.studies.ladder.change import change
    from smembench.views.console import say, stderr, stdout
    from smembench.views.ladder import ladder as gain
    from smembench.views.ladder_change import print_change, result
    from smembench.views.table import draw as draw_tables

    sizes: dict[str, int] = {}
    for name in ("n", "m", "k"):
        if name in axes:
            sizes[name], *more = parse_ints(axes[name], name=f"--{name}")
            if more:
                raise UsageError(f"--{name} {axes[name]}: {1 + len(more)} sizes; give one with --diff")
    if "cpu" in device:
        raise UsageError(f"--device {device}: --diff compares kernels for GPUs; leave it out")
    on = target(stored)
    gpu, capability = on
    form = printed(running)
    reasons = {"with --run": stored is not None, "without a GPU": gpu is None, "with --json": form == "json"}
    why = next((reason for reason, there in reasons.items() if there), "")
    outputs = opened(running, but={"csv": f"nothing is measured {why}"}) if why else None
    chosen = {"dtype": axes.get("dtype"), "b_layout": axes.get("b_layout")}
    changed = change(problem, step, sizes, **chosen, target=on)
    if outputs is None:  # its gain is to be measured
        console = stderr if form else stdout
        print_change(console, changed, capability, full=full)
        console.print()
        return changed
    measured = changed.measured(load(stored, predictor)) if stored else None

    def draw() -> None:
        print_change(stdout, changed, capability, full=full)
        stdout.print()
        if measured is not None:
            draw_tables(stdout, gain(measured))
        else:
            say(stdout, "The gain is not measured without a GPU; --run DIR takes it from a stored run.")

    outputs.show(result(changed, capability, measured, full=full), draw)
    return None
