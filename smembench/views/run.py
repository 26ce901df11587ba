"""The lines of a running measurement."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from smembench.model.device import DeviceInfo
from smembench.model.measurement import Status, Trial
from smembench.model.text import duration
from smembench.stats.summary import Summary
from smembench.studies.run import Watch
from smembench.views.console import say, stderr
from smembench.views.progress import progress


def watch(*, verbose: bool = False) -> Watch:
    """A run's notes and progress on stderr: a bar on a terminal, elsewhere a line per round; if verbose, per trial."""

    def note(line: str) -> None:
        if line:
            say(stderr, line)

    if not verbose:
        return Watch(note=note, progress=progress) if stderr.is_terminal else Watch(note=note, trial=rounds_told(note))
    return Watch(note, lambda info: note(device_line(info)), lambda trial: note(trial_line(trial)), progress)


def device_line(info: DeviceInfo) -> str:
    """How a device was calibrated; "" if nothing is subtracted from its samples."""
    if info.event_pair_us is None:
        return ""
    return f"{info.name}: an empty event pair reads {info.event_pair_us:.3f} µs, subtracted from every sample"


def rounds_told(note: Callable[[str], None]) -> Callable[[Trial], None]:
    """A function of each trial that notes how long each round took, for where there is no progress bar."""
    begun, current = monotonic(), 0

    def tell(trial: Trial) -> None:
        nonlocal current
        if trial.round > current:
            note(f"round {trial.round} done after {duration(monotonic() - begun)}")
            current = trial.round

    return tell


def trial_line(trial: Trial) -> str:
    """The case, its round, the device's state, its samples and those discarded."""
    where = f"round {trial.round + 1} {trial.case.id}"
    if trial.status is not Status.OK or not trial.samples:
        return f"{where}: {trial.status}: {trial.reason or 'no samples'}"
    summary = Summary.of(trial.samples)
    state = trial.conditions
    parts = [
        f"{summary.count} samples of {summary.median:.5f} ms ({summary.min:.5f} to {summary.max:.5f})",
        f"{trial.discarded} discarded",
        f"{trial.seconds:.2f} s",
        f"SM {state.sm_clock_mhz} MHz" if state.sm_clock_mhz else "",
        f"{state.temperature_c} °C" if state.temperature_c else "",
        f"{state.power_w:.0f} W" if state.power_w else "",
        f"throttled: {state.throttle_reasons}" if state.throttled else "",
        f"waited {100 * state.cpu_waiting:.1f} % for a core" if state.cpu_waiting is not None else "",
        f"{state.other_processes} other processes" if state.other_processes else "",
    ]
    thrown_away = f"; discarded: {_values(trial.discarded_ms)}" if trial.discarded_ms else ""
    return f"{where}: {', '.join(part for part in parts if part)}: {_values(trial.samples)}{thrown_away}"


def _values(samples: Sequence[float]) -> str:
    return " ".join(f"{value:.5f}" for value in samples)
