"""Runs a lesson's experiments, those with kernels in a process each, on a GPU or in Numba's simulator.

A kernel that hangs or crashes ends its process, and is a row like any other.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from random import choice
from subprocess import TimeoutExpired

from smembench.devices.select import CPU, resolve
from smembench.model.child import captured, child_command
from smembench.model.errors import DeviceUnavailable
from smembench.model.text import one_line
from smembench.run.environment import versions
from smembench.run.session import locked
from smembench.studies.lesson.experiment import Experiment, Observation, load
from smembench.toolchains.registry import Refused

SIMULATOR = "simulator"
_START_S = 120.0
"""To start Python and select a device."""


@dataclass(frozen=True, slots=True)
class Where:
    """A device by its name, the GPU's model or "", and the versions that decide what it runs."""

    name: str
    model: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Result:
    """A row: an experiment, where it was run ("" if nowhere), and what it showed."""

    experiment: Experiment
    on: str
    observation: Observation

    @property
    def failed(self) -> bool:
        """True for an unexpected outcome without an explanation."""
        return self.observation.as_expected is False and not self.experiment.unless


def where(device: str) -> Where:
    """The device of that name; ``auto`` is the CPU where there is no GPU.

    Raises:
        UsageError: for a name that no device has.
        DeviceUnavailable: for a GPU that is missing.
    """
    name, _ = resolve(device)
    if name == CPU:
        return Where(name, "", versions())
    from smembench.devices.cuda_description import gpu_info, why_unusable

    info = gpu_info(int(name.partition(":")[2]))
    if info is None:
        raise DeviceUnavailable(f"device {name}: {why_unusable() or 'there is no such GPU'}; --device cpu needs none")
    return Where(name, info.model, versions(cuda=True))


def results(name: str, device: str, runs: int, begin: Callable[[Experiment], None]) -> Iterator[Result]:
    """Run a lesson's experiments one after another.

    Args:
        name: of the lesson.
        device: as ``Where`` names it.
        runs: how often a GPU repeats each; the simulator does not.
        begin: called with each experiment before it is run.

    Raises:
        UsageError: for an unknown lesson.
        DeviceUnavailable: for a GPU in use.
    """
    lesson = load(name)
    with locked([device]):
        for number, experiment in enumerate(lesson.experiments):
            begin(experiment)
            if experiment.needs == "nothing":
                yield Result(experiment, CPU, _observed(experiment, runs))
            elif device != CPU:
                yield Result(experiment, device, isolated(name, number, device, runs))
            elif experiment.needs == "threads":
                yield Result(experiment, SIMULATOR, isolated(name, number, SIMULATOR, 1))
            else:
                yield Result(experiment, "", Observation("needs a GPU", None))


def _observed(experiment: Experiment, runs: int) -> Observation:
    try:
        return experiment.run(runs)
    except Refused as missing:
        return Observation(str(missing), None)
    except Exception as error:
        return Observation(one_line(error), as_expected=False)


def isolated(name: str, number: int, device: str, runs: int) -> Observation:
    """Run an experiment of a lesson, by number, in a process of its own, on a GPU or in the simulator."""
    experiment = load(name).experiments[number]
    simulated = {"NUMBA_ENABLE_CUDASIM": "1" if device == SIMULATOR else "0"}
    try:
        command = child_command("smembench.studies.lesson.run", name, number, device, runs)
        ended = captured(command, timeout=_START_S + experiment.seconds, env=os.environ | simulated)
    except TimeoutExpired:
        return Observation(f"its process did not start within {_START_S:g} s", as_expected=False)
    if ended.returncode == -signal.SIGALRM:
        return Observation(f"no end within {experiment.seconds:g} s: killed", experiment.hangs)
    if ended.returncode:
        return Observation(f"its process ended with {ended.returncode} {ended.stderr[-200:]}".strip(), False)
    return Observation(**json.loads(ended.stdout))


def main() -> None:
    """The process of an experiment. The operating system ends it when its time is over, wherever it hangs."""
    name, number, device, runs = sys.argv[1:]
    experiment = load(name).experiments[int(number)]
    if device == SIMULATOR:
        if hasattr(os, "sched_setaffinity"):  # its threads take turns, which takes three times as long on several cores
            os.sched_setaffinity(0, {choice([*os.sched_getaffinity(0)])})
    else:
        from cuda.core import Device

        Device(int(device.partition(":")[2])).set_current()
    signal.setitimer(signal.ITIMER_REAL, experiment.seconds)
    print(json.dumps(asdict(_observed(experiment, int(runs)))), flush=True)
    os._exit(0)  # without the clean-up, in which a broken CUDA context can hang


if __name__ == "__main__":
    main()
