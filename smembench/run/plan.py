"""The plan of a run: its cases in order, from the config, the kernels and the devices' limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from smembench.devices.base import GUARD_BYTES
from smembench.devices.select import AUTO, CPU
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import GpuKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Block, Case
from smembench.model.device import Limits
from smembench.model.errors import DeviceUnavailable, SmembenchError, UsageError
from smembench.model.problem import ITEMSIZE, Problem
from smembench.run.config import Config, Sweep


@dataclass(frozen=True, slots=True)
class Planned:
    """A case, and why it is skipped, if it is."""

    case: Case
    skip: str = ""


def devices_needed(config: Config, resolve: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the devices that the cases run on; ``resolve`` maps names in the config to devices."""
    planned = (device for sweep in config.sweep for device, _ in _placements(sweep, resolve))
    return tuple(dict.fromkeys(planned))


def plan(config: Config, limits: Mapping[str, Limits], resolve: Mapping[str, str]) -> list[Planned]:
    """Every case of the config, in the order they run: by sweep, device and size, kernels in teaching order.

    Raises:
        UsageError: if a case can never run (its block, tile, grid or memory exceeds the device's limits, or a name
            does not exist), or if no case is left.
        DeviceUnavailable: if no case is left because there is no GPU; if some are left, see ``left_out``.
    """
    cases: dict[Case, Planned] = {}
    for sweep in config.sweep:
        for planned in _plan_sweep(sweep, limits, resolve):
            cases.setdefault(planned.case, planned)
    if not cases:
        problems = ", ".join(dict.fromkeys(sweep.problem for sweep in config.sweep))
        raise _needs_gpu(f"{problems}: the chosen kernels run", config.sweep, resolve)
    if not any(not planned.skip for planned in cases.values()):
        reasons = "; ".join(dict.fromkeys(planned.skip for planned in cases.values()))
        raise UsageError(f"nothing to measure: {reasons}")
    return list(cases.values())


def _placements(sweep: Sweep, resolve: Mapping[str, str]) -> list[tuple[str, Kernel]]:
    """Which kernels run on which device.

    A kernel that exists only for the CPU, such as the baseline of the speed-ups, runs there whatever the chosen
    device. One that exists only for GPUs is left out if ``auto`` fell back to the CPU.
    """
    chosen = registry.names(sweep.problem, standard=True)
    if sweep.kernel:
        ceiling = PROBLEMS[sweep.problem].ceiling_kernel
        chosen = (*([ceiling] if ceiling else []), *sweep.kernel)
    if sweep.peers:
        chosen = (*chosen, *registry.peers(sweep.problem))
    placements: dict[tuple[str, Kernel], None] = {}
    for device in dict.fromkeys(resolve[name] for name in sweep.device):
        for name in dict.fromkeys(chosen):
            found = _on(device, name, sweep)
            if not found and name in sweep.kernel and device != CPU:
                raise _no_port(name, sweep)
            if not found and name in sweep.kernel and not _fell_back(sweep, resolve):
                raise _needs_gpu(f"kernel {name!r} runs", [sweep], resolve)
            placements |= dict.fromkeys(place for place in found if _wanted(place[1], sweep))
    # The ceiling was added here: alone it is not what the user chose.
    chosen_run = not sweep.kernel or any(kernel.name in sweep.kernel for _, kernel in placements)
    return list(placements) if chosen_run else []


def left_out(config: Config, resolve: Mapping[str, str]) -> str | None:
    """A note that names kernels left out because their sweep fell back to the CPU; None if there are none."""
    missing: dict[str, list[str]] = {}
    running: set[str] = set()
    for sweep in config.sweep:
        if _placements(sweep, resolve):
            running.add(sweep.problem)
        if _fell_back(sweep, resolve):
            chosen = sweep.kernel or registry.names(sweep.problem, standard=True)
            chosen = (*chosen, *(registry.peers(sweep.problem) if sweep.peers else ()))
            missing.setdefault(sweep.problem, []).extend(name for name in chosen if not _on(CPU, name, sweep))
    said = [
        f"{problem} {', '.join(dict.fromkeys(names))}" if problem in running else problem
        for problem, names in missing.items()
        if names
    ]
    return f"left out, since it runs only on a GPU: {'; '.join(said)}" if said else None


def _on(device: str, name: str, sweep: Sweep) -> list[tuple[str, Kernel]]:
    """The kernels with a name on a device, one per compiler; the copy ceiling and CPU kernels have only one."""
    problem, kind = PROBLEMS[sweep.problem], device.partition(":")[0]
    named = registry.of_name(problem.name, name, kind)
    if not named:
        return [("cpu", kernel) for kernel in registry.of_name(problem.name, name, "cpu")]
    if kind == "cpu" or name == problem.ceiling_kernel:
        return [(device, kernel) for kernel in named]
    return [(device, kernel) for kernel in named if kernel.peer or kernel.compiler in sweep.compiler]


def _no_port(name: str, sweep: Sweep) -> UsageError:
    ports = [
        port
        for port in registry.names(sweep.problem)
        if any(registry.find(sweep.problem, port, "cuda", compiler) for compiler in sweep.compiler)
    ]
    compilers = ",".join(sweep.compiler)
    return UsageError(f"kernel {name!r} has no port for --compiler {compilers} (there are: {', '.join(ports)})")


def _needs_gpu(what: str, sweeps: Sequence[Sweep], resolve: Mapping[str, str]) -> SmembenchError:
    """The error for kernels without a CPU form: a UsageError only if the user chose the CPU."""
    if any(_fell_back(sweep, resolve) for sweep in sweeps):
        return DeviceUnavailable(
            f"{what} only on a GPU, and none is usable (see: smembench doctor); smembench explain needs none"
        )
    return UsageError(f"{what} only on a GPU, not on {CPU}")


def _fell_back(sweep: Sweep, resolve: Mapping[str, str]) -> bool:
    """Whether ``auto`` fell back to the CPU."""
    return AUTO in sweep.device and resolve[AUTO] == CPU


def _wanted(kernel: Kernel, sweep: Sweep) -> bool:
    """Whether --pad or --no-pad keeps this kernel; a named kernel is always kept."""
    if sweep.pad is None or kernel.pad is None or sweep.kernel:
        return True
    return kernel.pad is sweep.pad


def _plan_sweep(sweep: Sweep, limits: Mapping[str, Limits], resolve: Mapping[str, str]) -> list[Planned]:
    problem = PROBLEMS[sweep.problem]
    given = sweep.sizes()
    sizes = product(problem.shapes(given), problem.combinations(given))
    placements = _placements(sweep, resolve)
    if sweep.stride:
        _check_stride(sweep, [kernel for _, kernel in placements])
    planned = []
    for dtype, (shape, parameters), cache in product(sweep.dtype, sizes, sweep.cache):
        for device, kernel in placements:
            case = Case(problem.name, kernel.name, device, dtype, shape.m, shape.n, shape.k, parameters=parameters)
            case = replace(case, cache=cache, compiler=kernel.compiler)
            case = problem.on_device(case, limits[device].multiprocessors)
            for variant in _variants(case, kernel, problem, sweep):
                skip = kernel.unsupported(variant) or ""
                if not skip:
                    _check(variant, kernel, problem, limits[device], limits.get(CPU))
                planned.append(Planned(variant, skip))
    return planned


def _check_stride(sweep: Sweep, kernels: Sequence[Kernel]) -> None:
    """Raise UsageError if a kernel takes no stride: in a table its dense case would look like a strided one."""
    without = list(dict.fromkeys(kernel.name for kernel in kernels if not kernel.strided))
    if not without:
        return
    takers = [name for name in registry.names(sweep.problem) if _takes_stride(sweep.problem, name)]
    way_out = f"name only {', '.join(takers)}" if takers else "leave it out"
    raise UsageError(f"stride {sweep.stride[0]}: {', '.join(without)} cannot take one; {way_out}")


def _takes_stride(problem: str, name: str) -> bool:
    return any(kernel.strided for kind in ("cuda", "cpu") for kernel in registry.of_name(problem, name, kind))


def _variants(case: Case, kernel: Kernel, problem: Problem, sweep: Sweep) -> list[Case]:
    """The case with each block, pad and stride that its kernel takes."""
    blocks: Sequence[Block | None] = (None,)
    if kernel.blocks:
        blocks = sweep.block or kernel.default_blocks or problem.default_blocks
    pads: Sequence[int | None] = (None,)
    if kernel.blocks and kernel.pad is not None:
        pads = sweep.pad_width if kernel.pad else (0,)
    strides: Sequence[int | None] = (sweep.stride or problem.default_strides) if kernel.strided else (None,)
    return [replace(case, block=block, pad=pad, stride=stride) for stride, block, pad in product(strides, blocks, pads)]


def device_bytes(case: Case, problem: Problem) -> int:
    """Memory of a case's arrays on its device."""
    return _arrays_bytes(case, problem) + 2 * GUARD_BYTES


def _arrays_bytes(case: Case, problem: Problem) -> int:
    return sum(problem.lengths(case)) * ITEMSIZE[case.dtype]


def host_bytes(case: Case, problem: Problem) -> int:
    """Host memory that a case needs: inputs, expected output, and the output copied back."""
    output = problem.output_length(case) * ITEMSIZE[case.dtype]
    # The reference of a product is computed in float64.
    reference = 4 * output if problem.flops(case) else output
    return _arrays_bytes(case, problem) + output + reference


def _check(case: Case, kernel: Kernel, problem: Problem, limits: Limits, host: Limits | None) -> None:
    where = f"{case.problem} {case.kernel} {case.size} {case.dtype} on {case.device}"
    if reason := problem.unsupported(case):
        raise UsageError(f"{where}: {reason}")
    if limits.max_elements is not None:
        for count in problem.lengths(case):
            if count > limits.max_elements:
                raise UsageError(
                    f"{where}: {count} elements are over the {limits.max_elements} that 32-bit indices reach; "
                    "use smaller sizes"
                )
    if case.block is not None:
        _check_block(case, case.block, kernel, limits)
    for what, needed, free in (
        ("device", device_bytes(case, problem), limits.free_bytes),
        ("host", host_bytes(case, problem), host.free_bytes if host else None),
    ):
        if free is not None and needed > free:
            raise UsageError(
                f"{where}: needs {_human(needed)} of {what} memory and {_human(free)} is free; use smaller sizes"
            )


def _check_block(case: Case, block: Block, kernel: Kernel, limits: Limits) -> None:
    threads = block.x * block.y
    if limits.max_threads is not None and threads > limits.max_threads:
        raise UsageError(
            f"block {block}: {threads} threads are over the limit of {limits.max_threads} per block on "
            f"{case.device}; choose a smaller one, such as 32x32"
        )
    if limits.max_block is not None and (block.x > limits.max_block[0] or block.y > limits.max_block[1]):
        x, y = limits.max_block
        raise UsageError(f"block {block}: over the limit of {x} × {y} threads on {case.device}")
    shared = kernel.shared_bytes(case)
    if limits.max_shared_bytes is not None and shared > limits.max_shared_bytes:
        padding = f" with pad {case.pad}" if case.pad else ""
        raise UsageError(
            f"block {block}{padding}: the {case.dtype} tile of {case.kernel} takes {shared} bytes and "
            f"{case.device} has {limits.max_shared_bytes} per block; choose a smaller block or pad"
        )
    program = kernel.build(case)
    if limits.max_grid is not None and isinstance(program, GpuKernel):
        x, y = program.grid
        if x > limits.max_grid[0] or y > limits.max_grid[1]:
            raise UsageError(
                f"size {case.size} in blocks of {block}: a grid of {x} × {y} blocks is over the "
                f"limit of {limits.max_grid[0]} × {limits.max_grid[1]} on {case.device}; choose larger blocks"
            )


def _human(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**28 else f"{count / 2**20:.1f} MiB"
