"""Placements: which kernels of a config run on which device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smembench.devices.select import AUTO, CPU
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.errors import DeviceUnavailable, SmembenchError, UsageError
from smembench.run.config import Sweep
from smembench.run.launch_sweep import LaunchSweep

ABSENT = "cuda"
"""In place of a GPU's name in a plan that is only shown, where there is no GPU."""
Placement = tuple[str, Kernel]
"""A device and a kernel that runs on it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A sweep and its kernels with the devices that they run on.

    Attributes:
        fell_back: whether ``auto`` chose the CPU because there is no GPU.
        left_out: names of the kernels that this leaves out.
    """

    sweep: Sweep | LaunchSweep
    on: tuple[Placement, ...]
    fell_back: bool
    left_out: tuple[str, ...]


def place(sweep: Sweep, resolve: Mapping[str, str]) -> Placed:
    """Place the kernels of a sweep; ``resolve`` maps names in the config to devices.

    A kernel that exists only for the CPU, such as the baseline of the speed-ups, runs there whatever the chosen
    device. One that exists only for GPUs is left out if ``auto`` fell back to the CPU.

    Raises:
        UsageError: for a named kernel that has no port for the compilers, or no form for the device; without names
            for a kernel file with a mistake.
    """
    if not sweep.kernel:
        registry.check_files()
    devices = dict.fromkeys(resolve[name] for name in sweep.device)
    fell_back = AUTO in sweep.device and resolve[AUTO] == CPU
    only_cpu = list(devices) == [CPU] and {*sweep.kernel} <= {*registry.names(sweep.problem, "cpu")}
    kernels = registry.of_problem(sweep.problem, "cpu" if only_cpu else "")
    placements: dict[Placement, None] = {}
    for device in devices:
        for name in _chosen(sweep, kernels):
            on_device = _on(device, name, sweep, kernels)
            if not on_device and name in sweep.kernel and device != CPU:
                raise _no_port(name, sweep, kernels)
            if not on_device and name in sweep.kernel and not fell_back:
                raise needs_gpu(f"kernel {name!r} runs", fell_back=fell_back)
            placements |= dict.fromkeys(place for place in on_device if _wanted(place[1], sweep))
    # The ceiling was added by _chosen: alone it is not what the user chose.
    any_chosen = not sweep.kernel or any(kernel.name in sweep.kernel for _, kernel in placements)
    left_out: list[str] = []
    if fell_back:
        everywhere = registry.of_problem(sweep.problem)
        left_out = [name for name in _chosen(sweep, everywhere) if not _on(CPU, name, sweep, everywhere)]
    return Placed(sweep, tuple(placements) if any_chosen else (), fell_back, tuple(left_out))


def place_launches(sweep: LaunchSweep, resolve: Mapping[str, str], *, listed: bool = False) -> Placed:
    """Place kernels of the user's, which run on GPUs alone.

    Where ``auto`` finds none they are left out, or with ``listed`` placed on ``ABSENT``.

    Raises:
        UsageError: if the CPU was chosen for them.
    """
    devices = dict.fromkeys(resolve[name] for name in sweep.device)
    fell_back = AUTO in sweep.device and resolve[AUTO] == CPU
    if fell_back and listed:
        devices, fell_back = {ABSENT: None}, False
    kernels = [Kernel(sweep.problem, label, "cuda") for label in sweep.labels]
    if CPU in devices and not fell_back:
        raise needs_gpu(f"{sweep.labels[0]} runs", fell_back=False)
    on = tuple((device, kernel) for device in devices if device != CPU for kernel in kernels)
    return Placed(sweep, on, fell_back, sweep.labels if fell_back else ())


def left_out(sweeps: Sequence[Placed]) -> str | None:
    """A note that names kernels left out because their sweep fell back to the CPU; None if there are none."""
    missing: dict[str, list[str]] = {}
    for placed in sweeps:
        missing.setdefault(placed.sweep.problem, []).extend(placed.left_out)
    running = {placed.sweep.problem for placed in sweeps if placed.on}
    lines = [
        f"{problem} {', '.join(dict.fromkeys(names))}" if problem in running else problem
        for problem, names in missing.items()
        if names
    ]
    return f"skipped (GPU only): {'; '.join(lines)}" if lines else None


def _chosen(sweep: Sweep, kernels: Sequence[Kernel]) -> list[str]:
    """Names of the kernels that a sweep chooses, and of the ceiling, which every run includes."""
    ceiling = PROBLEMS[sweep.problem].ceiling_kernel
    own = _with_padded(sweep.kernel or _standard(sweep, kernels), sweep, kernels)
    own = [*([ceiling] if ceiling and sweep.kernel else []), *own]
    return list(dict.fromkeys([*own, *(kernel.name for kernel in kernels if sweep.peers and kernel.peer)]))


def _with_padded(names: Sequence[str], sweep: Sweep, kernels: Sequence[Kernel]) -> list[str]:
    """The names, with ``pad`` each with that of its padded twin.

    Raises:
        UsageError: for padding that none of the kernels that the user names has.
    """
    padded = {kernel.name for kernel in kernels if kernel.pad}
    twins = {name.replace("Pad", ""): name for name in padded}
    chosen = [one for name in names for one in (name, twins.get(name) if sweep.pad else None) if one]
    if sweep.kernel and (sweep.pad or sweep.pad_width != (1,)) and padded.isdisjoint(chosen):
        what = "pad" if sweep.pad else f"pad_width {','.join(map(str, sweep.pad_width))}"
        beside = [twins[name] for name in names if name in twins]
        way_out = f"add pad, for {', '.join(beside)} beside it" if beside else "leave it out"
        raise UsageError(f"{what}: {', '.join(names)} {'have' if len(names) > 1 else 'has'} no padding; {way_out}")
    return chosen


def _standard(sweep: Sweep, kernels: Sequence[Kernel]) -> list[str]:
    """Names of the kernels that a sweep measures unless it names some: those that take one of its element types."""

    def runs(kernel: Kernel, dtype: str) -> bool:
        return kernel.takes(dtype) and (kernel.standard is True or dtype in (kernel.standard or ()))

    return [kernel.name for kernel in kernels if any(runs(kernel, dtype) for dtype in sweep.dtype)]


def _on(device: str, name: str, sweep: Sweep, kernels: Sequence[Kernel]) -> list[Placement]:
    """The kernels with a name on a device, one per compiler; the ceiling and CPU kernels have only one."""
    kind = device.partition(":")[0]
    named = [kernel for kernel in kernels if (kernel.name, kernel.kind) == (name, kind)]
    if not named:
        return [(CPU, kernel) for kernel in kernels if (kernel.name, kernel.kind) == (name, "cpu")]
    placements = [
        (device, kernel)
        for kernel in named
        if kind == "cpu" or kernel.peer or kernel.library or kernel.compiler in sweep.compiler
    ]
    return placements or [(device, named[0])] if name == PROBLEMS[sweep.problem].ceiling_kernel else placements


def _no_port(name: str, sweep: Sweep, kernels: Sequence[Kernel]) -> UsageError:
    ported = (kernel.name for kernel in kernels if kernel.kind == "cuda" and kernel.compiler in sweep.compiler)
    there_are, compilers = ", ".join(dict.fromkeys(ported)), ",".join(sweep.compiler)
    return UsageError(f"kernel {name!r} has no port for --compiler {compilers} (there are: {there_are})")


def needs_gpu(what: str, *, fell_back: bool) -> SmembenchError:
    """The error for kernels without a CPU form: a UsageError only if the user chose the CPU."""
    if fell_back:
        return DeviceUnavailable(
            f"{what} only on a GPU, and none is usable (see: smembench doctor); smembench explain needs none"
        )
    return UsageError(f"{what} only on a GPU, not on {CPU}")


def _wanted(kernel: Kernel, sweep: Sweep) -> bool:
    """True if --no-pad keeps this kernel; a named kernel is always kept."""
    return sweep.pad is not False or not kernel.pad or bool(sweep.kernel)
