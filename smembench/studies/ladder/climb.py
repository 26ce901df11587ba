"""The ladder of a problem: from the naive kernel to the limit, one idea per step, and each step's gain in a run."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from smembench.devices.select import resolve
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import ENGINES
from smembench.model.errors import UsageError
from smembench.model.formats import element_type
from smembench.run.axes import parse_ints, split, unknown
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import Ratio, ratio


@dataclass(frozen=True, slots=True)
class Rung:
    """A step that was measured.

    ``row`` is that of its fastest block; ``gain`` how many times as fast it is as the fastest rung below, None for the
    lowest and for times that make no ratio.
    """

    kernel: Kernel
    row: Row
    gain: Ratio | None

    @property
    def loses(self) -> bool:
        """True if the step is slower than the best one before it."""
        return self.gain is not None and self.gain.differs and self.gain.value < 1


def steps(problem: str, kind: str, rows: float = inf) -> tuple[Kernel, ...]:
    """The kernels of the ladder on a kind of device, from the lowest up, for products of so many rows."""
    of_problem = (k for k in registry.kernels() if (k.problem, k.kind) == (problem, kind) and not k.port)
    return tuple(k for k in of_problem if k.ladder and (not k.few or rows <= k.few))


def problems() -> tuple[str, ...]:
    """The problems that have a ladder."""
    climbed = {kernel.problem for kernel in registry.kernels() if kernel.ladder}
    return tuple(name for name in PROBLEMS if name in climbed)


def sweeps(problem: str, device: str = "auto", **axes: object) -> list[dict[str, object]]:
    """The sweeps of a config that measures the ladder of a problem, one for each device of a list.

    The kind of a device decides its steps, and which of them take one of the element types. ``axes`` are other keys of
    the sweeps; those that are None are left out.

    Raises:
        UsageError: for a problem without a ladder, and a device that does not exist.
    """
    check(problem)
    given = {name: value for name, value in axes.items() if value is not None}
    rows = max(parse_ints(str(given["m"]), name="--m")) if "m" in given else inf
    wanted = [element_type(dtype) for dtype in split(str(given.get("dtype", "")).lower()) if dtype]
    dtypes = wanted or PROBLEMS[problem].dtypes[:1]

    def chosen(device: str) -> str:
        # Without a step on the device the plan says that they need a GPU.
        of_problem = steps(problem, _kind(device), rows) or steps(problem, "cuda", rows)
        return ",".join(k.name for k in of_problem if any(k.takes(dtype) for dtype in dtypes)) or of_problem[0].name

    return [{"problem": problem, "kernel": chosen(name), "device": name, **given} for name in split(device)]


def check(problem: str) -> None:
    """Raise UsageError for a problem without a ladder, and for a mistake in a file of the user's."""
    registry.check_files()
    if problem not in problems():
        raise UsageError(f"ladder {problem!r}: {unknown(problem, problems(), 'ladder')}")


def _kind(device: str) -> str:
    """The kind of the device of this name."""
    try:
        name, _ = resolve(device)
    except UsageError as error:
        raise UsageError(f"--device: {error}") from None
    return name.partition(":")[0]


def ceiling(problem: str) -> str:
    """The column of cases.csv with a rung's share of the limit: of its ceiling's speed, or of the peak."""
    return "percent_of_copy" if PROBLEMS[problem].ceiling_kernel else "percent_of_peak"


def climb(run: Run) -> list[Rung]:
    """The rungs of a run of one size on one device, from the lowest up; steps without a figure are left out."""
    rungs: list[Rung] = []
    times = {row: row.elapsed_ms for row in run.rows if row.ok and row.elapsed_ms is not None}
    for kernel in steps(run.rows[0].problem, run.rows[0].case.kind, rows=0) if run.rows else ():
        done = [row for row in times if row.kernel == kernel.name and row.compiler in ENGINES]
        if done:
            row = min(done, key=times.__getitem__)
            below = min((rung.row for rung in rungs), key=times.__getitem__, default=None)
            rungs.append(Rung(kernel, row, ratio(run, below, row) if below else None))
    return rungs
