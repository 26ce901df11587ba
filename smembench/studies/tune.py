"""The search for the fastest kernel, block and pad: pruned candidates, and finalists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import Any

from smembench.devices.select import CPU, resolve
from smembench.explain.prediction import figures_of, trace_together
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case
from smembench.model.errors import UsageError
from smembench.model.interrupts import deferred, interruptible
from smembench.model.measurement import Measurement, Trial
from smembench.model.sustained import Sustained
from smembench.model.text import number_of
from smembench.run.axes import parse_kernels, parse_names
from smembench.run.config import from_stored
from smembench.run.launch_cases import launch_cases
from smembench.run.launch_sweep import LaunchSweep
from smembench.run.narrowed import as_sweep
from smembench.run.placement import needs_gpu
from smembench.run.session import Session, open_session
from smembench.run.stop_rule import PRESETS
from smembench.stats.summary import median_interval
from smembench.studies.explain import shape_of
from smembench.studies.ladder.climb import problems
from smembench.studies.run import SILENT, Watch

SIDES = (4, 8, 16, 32, 64, 128)
"""Sides of the blocks to try, beside a kernel's own blocks; where those are rows, rows of all numbers of threads."""
THREADS = (64, 1024)
"""Fewest and most threads per block."""
PADS = (1, 2)
ALLOWED = 4.0
"""Most cycles of a candidate's traffic, over the fewest: the model knows no caches and no latency."""
SECTORS_PER_CYCLE = 2
"""From the L2 to a multiprocessor, whose shared memory serves a wavefront per cycle."""
FINALISTS = 5
FINAL_ROUNDS = 10
"""Rounds of the finalists, unless the run's keys give another number."""
_LOAD_SECONDS = 10.0
"""Of each finalist, for its energy."""


@dataclass(frozen=True, slots=True)
class PredictedCost:
    """Predicted 32-byte sectors of global memory and wavefronts of shared memory per launch."""

    sectors: float
    wavefronts: float

    @property
    def cycles(self) -> float:
        """Cycles of one multiprocessor, which does both at once."""
        return max(self.sectors / SECTORS_PER_CYCLE, self.wavefronts)


Predict = Callable[[Case], PredictedCost | None]


@dataclass(frozen=True, slots=True)
class Search:
    """Candidates to measure, and how many others the limits and the predictions ruled out."""

    cases: tuple[Case, ...]
    over_limits: int
    predicted_slow: int


def search(
    base: Case, names: Sequence[str], predict: Predict, ahead: Callable[[Sequence[Case]], None] = lambda cases: None
) -> Search:
    """Every kernel, block and pad that is worth measuring at the size, dtype and device of ``base``.

    A case without a predicted cost is kept. ``ahead`` is called with all cases whose cost will be asked for.
    """
    kernels = [registry.find(base.problem, name, base.kind) for name in names]
    tried = [case for kernel in kernels if kernel and registry.solves(kernel) for case in _variants(base, kernel)]
    fitting = [case for case in tried if registry.kernel_of(case).refusal(case) is None]
    ahead(fitting)
    costs = {case: predict(case) for case in fitting}
    most = ALLOWED * min((cost.cycles for cost in costs.values() if cost is not None), default=0.0)
    kept = tuple(case for case, cost in costs.items() if cost is None or cost.cycles <= most)
    return Search(kept, len(tried) - len(fitting), len(fitting) - len(kept))


def _variants(base: Case, kernel: Kernel) -> list[Case]:
    if not kernel.blocks:
        return [replace(base, kernel=kernel.name, block=None, pad=None)]
    pads: Sequence[int | None] = (None,) if kernel.pad is None else PADS if kernel.pad else (0,)
    own = kernel.default_blocks or PROBLEMS[kernel.problem].default_blocks
    usual = {Block(x, y) for x, y in product(SIDES, SIDES) if THREADS[0] <= x * y <= THREADS[1]}
    if all(block.y == 1 for block in own):
        usual = {Block(block.x * block.y, 1) for block in usual}
    blocks = dict.fromkeys([*sorted(usual), *own])
    return [replace(base, kernel=kernel.name, block=block, pad=pad) for block, pad in product(blocks, pads)]


def predicted_cost(case: Case) -> PredictedCost | None:
    """Cost of a whole launch from a trace of the kernel.

    None for CPU kernels, for those that cannot be traced, and where the TMA copies tiles, which are no requests.
    """
    program = registry.kernel_of(case).build(case)
    if not isinstance(program, NumbaKernel) or program.tensor_maps:
        return None
    figures = figures_of(case)
    if figures is None or figures.prediction.unexplained:
        return None
    return PredictedCost(figures.sectors, figures.wavefronts)


def check_objective(objective: str, device: str) -> None:
    """Check that a device can be measured for an objective.

    Raises:
        UsageError: for energy on a CPU.
        DeviceUnavailable: for energy without a GPU.
    """
    if objective == "energy":
        where, note = resolve(device)
        if where == CPU:
            raise needs_gpu("--objective energy: the load that it needs runs", fell_back=note is not None)


def candidates(
    problem: str,
    sizes: Mapping[str, int | None] = MappingProxyType({}),
    *,
    dtype: str = "float32",
    kernel: str | None = None,
    device: str = "auto",
    watch: Watch = SILENT,
) -> Search:
    """The cases of a problem that are worth measuring on a device.

    The arguments are those of ``smembench.tune``, but that ``sizes`` are by name, such as ``n``; ``watch`` has
    callbacks for notes and progress.

    Raises:
        UsageError: for an unknown name, and if none of the kernels is a candidate.
    """
    (problem,) = parse_names(problem, problems(), name="tune", what="problem with kernels to choose from")[:1]
    contract = PROBLEMS[problem]
    (dtype,) = parse_names(dtype, contract.dtypes, name="--dtype", what=f"element type for {problem}")[:1]
    where, note = resolve(device)
    if note:
        watch.note(note)
    known = [name for name in registry.names(problem) if registry.find(problem, name, where.partition(":")[0])]
    if not kernel:
        registry.check_files()
    names = parse_kernels(kernel, known, what=f"{problem} kernel on {where}") if kernel else known
    shape = shape_of(contract, sizes)
    (parameters, *_) = contract.combinations({})
    base = Case(problem, "", where, dtype, shape.m, shape.n, shape.k, parameters=parameters)
    base = replace(base, inputs=contract.usual_inputs(dtype), b_layout=contract.usual_b_layout(dtype))
    with watch.progress() as begin:
        result = search(base, names, predicted_cost, lambda cases: trace_together(cases, begin))
    if not result.cases:
        what = f"--kernel {kernel}: none of them" if kernel else "no kernel"
        raise UsageError(f"{what} is a candidate for the fastest {problem} in {dtype} at these sizes on {where}")
    return result


def launches(sweep: LaunchSweep) -> Search:
    """The combinations of a sweep of the user's kernels; none is ruled out by a prediction.

    Raises:
        UsageError: for an expression, an argument or dimensions that are none.
        DeviceUnavailable: without a GPU.
    """
    if sized := [name for name, values in sweep.sizes.items() if len(values) > 1]:
        raise UsageError(f"size {sized[0]} has several values: give one, for which the fastest is searched")
    where, note = resolve(sweep.device[0])
    if where == CPU:
        raise needs_gpu(f"{sweep.labels[0]} runs", fell_back=note is not None)
    cases = tuple(launch_cases(sweep, where))
    return Search(cases, sweep.count - len(cases), 0)


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best case by the objective, the finalists, and all measurements of the final run."""

    best: Case
    finalists: Sequence[Case]
    measurements: Sequence[Measurement]
    objective: str = "time"


class TuneInterrupted(KeyboardInterrupt):
    """Ctrl-C during a search.

    Attributes:
        so_far: the best so far; None before anything was measured. Its finalists are all candidates measured by then,
            unless all the finalists had been measured again.
        among: what those are, such as "7 of 50 candidates, measured quickly".
    """

    def __init__(self, so_far: Tuned | None, among: str) -> None:
        progress = f"{so_far.best.id} is the best so far among {among}" if so_far else "no candidate was measured"
        super().__init__(f"interrupted: {progress}")
        self.so_far = so_far
        self.among = among


def tuned(
    searched: Search,
    sampling: Mapping[str, Any] = MappingProxyType({}),
    watch: Watch = SILENT,
    *,
    objective: str = "time",
) -> Tuned:
    """Measure candidates quickly, and the finalists against each other in one interleaved run.

    ``sampling`` has keys of the run that replace those of both measurements. With the objective energy the finalists,
    which are the fastest, are also launched back to back for seconds, and the best takes the least energy per launch.

    Raises:
        UsageError: for an unknown key, and if nothing could be measured.
        DeviceUnavailable: for a device that is missing or in use.
        TuneInterrupted: on Ctrl-C; a KeyboardInterrupt with the best so far.
    """
    with deferred() as hold:
        first, cut = _measured(searched.cases, {**PRESETS["quick"], **sampling, "sustained": 0.0}, watch)
        # The ceiling is measured in every run, and is not a candidate.
        done = finalists((measurement for measurement in first if measurement.case in searched.cases), len(first))
        chosen = done[:FINALISTS]
        if failed := [one for one in first if not one.ok and one.case in searched.cases]:
            watch.note(
                f"{number_of(len(failed), 'candidate')} failed, the first {failed[0].case.id}: {failed[0].reason}"
            )
        among = f"{len(done)} of {number_of(len(searched.cases), 'candidate')}, measured quickly"
        if cut or hold.take():
            raise TuneInterrupted(_best(done, first), among)
        if not chosen:
            raise UsageError(f"no candidate could be measured: {first[-1].reason}")
        loads = {"sustained": _LOAD_SECONDS} if objective == "energy" else {}
        last, cut = _measured(chosen, {"rounds": FINAL_ROUNDS, **loads, **sampling}, watch)
        best = _best(chosen, last, objective)
        if cut or hold.take():
            if {measurement.case for measurement in last if measurement.ok} >= {*chosen}:
                raise TuneInterrupted(best, "the finalists, in an unfinished run")
            raise TuneInterrupted(_best(done, first), among)
    if best is None and objective == "energy" and any(one.ok for one in last):
        raise UsageError("--objective energy: NVML counts none here, or the load was too short")
    if best is None:
        raise UsageError(f"no finalist could be measured again: {last[-1].reason}")
    return best


def _best(chosen: Sequence[Case], measurements: Sequence[Measurement], objective: str = "time") -> Tuned | None:
    costs = {m.case: m.summary.median for m in measurements if m.summary is not None and m.case in chosen}
    if objective == "energy":
        energies = {m.case: Sustained.of(m.moments).energy_mj for m in measurements if m.case in costs}
        costs = {case: energy for case, energy in energies.items() if energy is not None}
    return Tuned(min(costs, key=costs.__getitem__), chosen, measurements, objective) if costs else None


def _measured(cases: Sequence[Case], sampling: Mapping[str, Any], watch: Watch) -> tuple[list[Measurement], bool]:
    """Measure these cases in one interleaved run; also whether Ctrl-C cut it short."""
    config = from_stored({"name": "tune", **sampling, "sweep": [as_sweep(case) for case in cases]}, where="")
    trials: list[Trial] = []
    session: Session | None = None
    cut = False
    with ExitStack() as opened:
        try:
            with interruptible():
                session = opened.enter_context(open_session(config))
            begin = opened.enter_context(watch.progress())
            trials.extend(session.runner.run(begin=begin))
        except KeyboardInterrupt:
            cut = True
        return session.measurements(trials) if session else [], cut


def lower_end(measurement: Measurement) -> float:
    """The lower end of the 95 % interval of the median, in ms: the case's time at best."""
    return median_interval([sample.elapsed_ms for sample in measurement.samples])[0]


def finalists(measurements: Iterable[Measurement], count: int = FINALISTS) -> list[Case]:
    """The cases that may be the fastest, by the lower end of their intervals, without failed ones."""
    done = sorted((measurement for measurement in measurements if measurement.ok), key=lower_end)
    return [measurement.case for measurement in done[:count]]
