"""A run in progress: locks the devices, starts a worker, plans the cases and runs them. Prints nothing."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from smembench.devices.lock import device_lock, unseen_runs
from smembench.devices.select import CPU, open_device, resolve, uuid_of
from smembench.kernels import registry
from smembench.model.device import DeviceInfo, Limits
from smembench.model.interrupts import interruptible
from smembench.model.measurement import Measurement, Trial
from smembench.run.config import Config
from smembench.run.placement import ABSENT, left_out
from smembench.run.plan import Plan, Planned
from smembench.run.runner import Runner
from smembench.run.stop_rule import rules_of
from smembench.run.worker import Worker
from smembench.store.assemble import Predict, assemble, ci_widths, unpredicted
from smembench.store.files import check_working_directory
from smembench.toolchains.settings import settings


@dataclass(slots=True)
class Session:
    """A run that can begin.

    Attributes:
        planned: every case of the config, in order.
        infos: the devices of the cases, by name.
        notes: lines for the user, such as which kernels were left out.
        runner: runs the cases in a worker process.
    """

    config: Config
    seed: int
    planned: list[Planned]
    infos: dict[str, DeviceInfo]
    notes: tuple[str, ...]
    runner: Runner

    def measurements(self, trials: Iterable[Trial], predict: Predict = unpredicted) -> list[Measurement]:
        """Measurements of the cases that have trials, with predictions by ``predict``."""
        cases = (item.case for item in self.planned)
        return assemble(cases, trials, self.infos, ci_widths(self.config.precision), predict)


@contextmanager
def locked(
    names: Iterable[str], *, wait: bool = False, waiting: Callable[[str], None] = lambda holder: None
) -> Iterator[None]:
    """Hold the locks of the GPUs among these devices; the CPU has none.

    Raises:
        DeviceUnavailable: if another process holds one and ``wait`` is False.
    """
    with ExitStack() as locks:
        for uuid in filter(None, map(uuid_of, names)):
            locks.enter_context(device_lock(uuid, wait=wait, waiting=waiting))
        yield


@contextmanager
def open_session(
    config: Config,
    *,
    lock: bool = True,
    wait: bool = False,
    waiting: Callable[[str], None] = lambda holder: None,
    seed: int | None = None,
    hire: Callable[[Sequence[str]], Worker] = Worker,
) -> Iterator[Session]:
    """Start a worker on the devices that a config needs, and plan its cases; the worker and the locks end with it.

    ``hire`` starts a worker.

    Without a seed in the config or here, a run draws a random one. The seed is recorded, so any run can be repeated.

    Raises:
        UsageError: for cases that cannot run, and settings with which kernels are not compiled or not optimised.
        DeviceUnavailable: for a device that does not exist or is in use.
    """
    check_working_directory()
    with ExitStack() as resources:
        with interruptible():
            plan, names, notes = _plan(config)
            # Lock before a worker opens the device: that calibrates it, which would disturb another run.
            if lock:
                resources.enter_context(locked(names, wait=wait, waiting=waiting))
                if wait and any(map(uuid_of, names)) and (unseen := unseen_runs()):
                    notes = (*notes, unseen)
            worker = hire(names)
            resources.callback(worker.kill)
            items = list(plan.cases(worker.limits))
        used = {item.case.device for item in items}
        infos = {name: info for name, info in worker.infos.items() if name in used}
        chosen = config.seed if seed is None else seed
        seed = secrets.randbits(31) if chosen is None else chosen
        runner = Runner(items, rules_of(config), seed, config.timeout, worker, lambda: hire(names))
        resources.callback(runner.close)
        yield Session(config, seed, items, infos, notes, runner)


@contextmanager
def open_plan(
    config: Config, *, listed: bool = False
) -> Iterator[tuple[Iterable[Planned], Mapping[str, DeviceInfo], Sequence[str]]]:
    """The cases of a config one after another, to be shown, with all devices and the notes.

    With ``listed`` kernels of the user's are among them where there is no GPU.

    Raises:
        UsageError: as ``Plan.of`` and ``Plan.cases``.
        DeviceUnavailable: for a device that does not exist.
    """
    plan, names, notes = _plan(config, listed=listed)
    absent = {ABSENT: DeviceInfo(name=ABSENT, model="no GPU is usable here, see: smembench doctor")}
    # Opened here at once: a process would take as long to start as this one. Settings are judged by a worker's Numba.
    if names == (CPU,) and not settings():
        device = open_device(CPU)
        limits = {CPU: device.limits(), ABSENT: Limits(sys.maxsize)}
        yield plan.cases(limits), {CPU: device.info} | absent, notes
        return
    worker = Worker(names)
    try:
        yield plan.cases(worker.limits | {ABSENT: Limits(sys.maxsize)}), worker.infos | absent, notes
    finally:
        worker.kill()


def _plan(config: Config, *, listed: bool = False) -> tuple[Plan, tuple[str, ...], tuple[str, ...]]:
    """The plan of a config on this machine, the devices to open for it, and notes for the user."""
    resolved, fallback = {}, None
    for name in dict.fromkeys(name for sweep in config.sweep for name in sweep.device):
        resolved[name], note = resolve(name)
        fallback = fallback or note
    plan = Plan.of(config, resolved, listed=listed)
    fallback = fallback if any(placed.fell_back for placed in plan.sweeps) else None
    # Always with the CPU: the plan needs the host's free memory.
    names = tuple(name for name in dict.fromkeys((*plan.devices, CPU)) if name != ABSENT)
    return plan, names, tuple(filter(None, (fallback, left_out(plan.sweeps), *registry.mistakes())))
