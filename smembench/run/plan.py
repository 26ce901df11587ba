"""The plan of a run: its cases in order, from the config, the kernels and the devices' limits. No side effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from smembench.devices.base import GUARD_BYTES, MOST_COPIES, copies_of
from smembench.devices.select import CPU
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import GpuKernel
from smembench.kernels.time.problem import launch_of
from smembench.model.case import DEFAULT_COMPILER, ROTATED, Block, Case
from smembench.model.device import Limits
from smembench.model.errors import UsageError
from smembench.model.problem import Problem
from smembench.run.config import Config, Sweep
from smembench.run.launch_sweep import LaunchSweep
from smembench.run.placement import Placed, needs_gpu, place, place_launches
from smembench.toolchains.registry import compilers


@dataclass(frozen=True, slots=True)
class Planned:
    """A case, why it is skipped, if it is, and how many copies of its arrays its launches take in turn."""

    case: Case
    skip: str = ""
    copies: int = 1


MOST_CASES = 1_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """Kernels and devices of a config, chosen once; its cases follow from the devices' limits.

    Attributes:
        sweeps: each sweep with its kernels on their devices.
        count: cases of the config, or more if it names some twice.
    """

    sweeps: tuple[Placed, ...]
    count: int

    @classmethod
    def of(cls, config: Config, resolve: Mapping[str, str], *, listed: bool = False) -> Plan:
        """Place the kernels of a config; ``resolve`` maps names of devices in it to devices, ``listed`` as there.

        Raises:
            UsageError: if a named kernel does not exist for the device or compiler, or there are more than
                ``MOST_CASES`` cases.
            SmembenchError: for a sustained load without a GPU, as ``needs_gpu``.
        """
        sweeps = tuple(
            place_launches(sweep, resolve, listed=listed) if isinstance(sweep, LaunchSweep) else place(sweep, resolve)
            for sweep in config.sweep
        )
        count = sum(map(_count, sweeps))
        if count > MOST_CASES:
            raise UsageError(f"{count} cases are over the {MOST_CASES} of a run; give fewer values, or larger steps")
        plan = cls(sweeps, count)
        if config.sustained and plan.devices == (CPU,):
            raise needs_gpu("sustained: a load of seconds runs", fell_back=any(placed.fell_back for placed in sweeps))
        return plan

    @property
    def devices(self) -> tuple[str, ...]:
        """Devices that the cases run on."""
        return tuple(dict.fromkeys(device for placed in self.sweeps for device, _ in placed.on))

    def cases(self, limits: Mapping[str, Limits]) -> Iterator[Planned]:
        """Each case, in the order they run: by sweep, device and size, kernels in the order of the lesson.

        Raises:
            UsageError: if a case can never run (its block, tile, grid or memory exceeds the device's limits), for two
                launches of the user's that tables could not distinguish, or if no case is left.
            DeviceUnavailable: if no case is left because there is no GPU; if some are left, see ``left_out``.
        """
        skipped: dict[Case, str] = {}
        known: dict[str, Case] = {}
        for placed in self.sweeps:
            launches = isinstance(placed.sweep, LaunchSweep)
            for item in (_plan_launches if launches else _plan_sweep)(placed, limits):
                if known.setdefault(item.case.id, item.case) != item.case:
                    raise UsageError(f"{item.case.id}: two launches have this name; give each sweep a name of its own")
                if item.case not in skipped:
                    skipped[item.case] = item.skip
                    yield item
        if not skipped:
            problems = ", ".join(dict.fromkeys(placed.sweep.problem for placed in self.sweeps))
            fell_back = any(placed.fell_back for placed in self.sweeps)
            raise needs_gpu(f"{problems}: the chosen kernels run", fell_back=fell_back)
        if all(skipped.values()):
            raise UsageError(f"nothing to measure: {'; '.join(dict.fromkeys(skipped.values()))}")


def _count(placed: Placed) -> int:
    sweep = placed.sweep
    if isinstance(sweep, LaunchSweep):
        return sweep.count * len({device for device, _ in placed.on})
    problem = PROBLEMS[sweep.problem]
    variants = sum(prod(map(len, _axes(kernel, problem, sweep))) for _, kernel in placed.on)
    return variants * problem.count(sweep.sizes()) * prod(map(len, (sweep.dtype, *_others(sweep), sweep.cache)))


def _others(sweep: Sweep) -> tuple[Sequence[str | None], Sequence[str | None]]:
    """The inputs and layouts of B of a sweep; None is the problem's usual one."""
    return sweep.inputs or (None,), sweep.b_layout or (None,)


def _plan_launches(placed: Placed, limits: Mapping[str, Limits]) -> Iterator[Planned]:
    """The cases of kernels of the user's; those that a GPU has no room for are skipped."""
    from smembench.run.launch_cases import launch_cases  # imports NumPy

    assert isinstance(placed.sweep, LaunchSweep)
    for device in dict.fromkeys(device for device, _ in placed.on):
        for case in launch_cases(placed.sweep, device):
            launch, free = launch_of(case), limits[device].free_bytes
            flushed = limits[device].flush_bytes if case.cache == "cold" else 0
            copies, skip = _rotation(case, sum(launch.array_bytes), limits[device])
            needed = copies * sum(launch.array_bytes) + launch.saved_bytes + flushed
            missing = f"needs {_human(needed)} of device memory and {_human(free)} is free; use smaller arrays"
            yield Planned(case, skip or (missing if needed > free else ""), copies)


def _rotation(case: Case, array_bytes: int, limits: Limits) -> tuple[int, str]:
    """The copies of its arrays that a case's launches take in turn, and why none can; "" if they can."""
    copies, skip = copies_of(case, array_bytes, limits.flush_bytes), ""
    if case.cache == ROTATED and case.kind == "cpu":
        skip = f"cache {ROTATED}: is a GPU's; leave it out, or use cold"
    elif copies > MOST_COPIES:
        most = f"{MOST_COPIES} copies of {array_bytes} bytes are below twice the L2"
        skip = f"cache {ROTATED}: {most}; use larger sizes, or cold"
    elif copies > 1 and case.launch is not None and case.launch.saved_bytes:
        skip = f"cache {ROTATED}: what --inout and --reset restore before a launch is in the L2 then; use cold"
    return (1 if skip else copies), skip


def _plan_sweep(placed: Placed, limits: Mapping[str, Limits]) -> Iterator[Planned]:
    sweep = placed.sweep
    assert isinstance(sweep, Sweep)
    problem = PROBLEMS[sweep.problem]
    if sweep.stride:
        _check_stride(sweep, [kernel for _, kernel in placed.on])
    missing = {toolchain.name: toolchain.not_installed() for toolchain in compilers()}
    for case, kernel in _without_variants(placed, problem, limits):
        for stride, block, pad in product(*_axes(kernel, problem, sweep)):
            variant = replace(case, block=block, pad=pad, stride=stride)
            refusal = kernel.refusal(variant, limits[case.device].capability) or ""
            uncompiled = missing.get(kernel.compiler, "")
            skip = uncompiled if uncompiled and (refusal or _compiled(kernel, variant)) else refusal
            array_bytes = sum(problem.sizes_of_arrays(variant, problem.lengths(variant)))
            copies, unrotated = _rotation(variant, array_bytes, limits[case.device])
            if not (skip := skip or unrotated):
                check(variant, kernel, problem, limits[case.device], limits.get(CPU), copies)
            yield Planned(variant, skip, copies)


def _compiled(kernel: Kernel, case: Case) -> bool:
    """True if its compiler compiles it; CPU functions and library calls merely have the default compiler's name."""
    return kernel.compiler != DEFAULT_COMPILER or isinstance(kernel.build(case), GpuKernel)


def _without_variants(placed: Placed, problem: Problem, limits: Mapping[str, Limits]) -> Iterator[tuple[Case, Kernel]]:
    """A sweep's cases without stride, block and pad, which are the kernel's own."""
    assert isinstance(placed.sweep, Sweep)
    sweep, given = placed.sweep, placed.sweep.sizes()
    # Not a product of all, which would make every shape first.
    sizes = ((dtype, shape) for dtype in sweep.dtype for shape in problem.shapes(given))
    others = tuple(product(problem.combinations(given), *_others(sweep), sweep.cache))
    for (dtype, shape), (parameters, inputs, b_layout, cache) in ((size, other) for size in sizes for other in others):
        for device, kernel in placed.on:
            if not (sweep.kernel or kernel.takes(dtype)):
                continue
            case = Case(
                *(problem.name, kernel.name, device, dtype, shape.m, shape.n, shape.k),
                cache=cache,
                compiler=kernel.compiler,
                parameters=parameters,
                inputs=inputs or problem.usual_inputs(dtype),
                b_layout=b_layout or problem.usual_b_layout(dtype),
            )
            yield problem.on_device(case, limits[device].multiprocessors), kernel


def _check_stride(sweep: Sweep, kernels: Sequence[Kernel]) -> None:
    """Raise UsageError if a kernel takes no stride: in a table its dense case would look like a strided one."""
    without = list(dict.fromkeys(kernel.name for kernel in kernels if not kernel.strided))
    if not without:
        return
    takers = dict.fromkeys(kernel.name for kernel in registry.of_problem(sweep.problem) if kernel.strided)
    way_out = f"name only {', '.join(takers)}" if takers else "leave it out"
    raise UsageError(f"stride {sweep.stride[0]}: {', '.join(without)} cannot take one; {way_out}")


def _axes(
    kernel: Kernel, problem: Problem, sweep: Sweep
) -> tuple[Sequence[int | None], Sequence[Block | None], Sequence[int | None]]:
    """The strides, blocks and pads that a kernel takes of a sweep."""
    blocks: Sequence[Block | None] = (None,)
    if kernel.blocks:
        blocks = sweep.block or kernel.default_blocks or problem.default_blocks
    pads: Sequence[int | None] = (None,)
    if kernel.blocks and kernel.pad is not None:
        pads = sweep.pad_width if kernel.pad else (0,)
    return (sweep.stride or problem.default_strides) if kernel.strided else (None,), blocks, pads


def check(
    case: Case, kernel: Kernel, problem: Problem, limits: Limits, host: Limits | None = None, copies: int = 1
) -> None:
    """Check that a device, and its host, can take a case with ``copies`` copies of its arrays.

    Raises:
        UsageError: if not.
    """
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
    sizes = problem.sizes_of_arrays(case, problem.lengths(case))
    arrays, output = sum(sizes), sizes[0]
    # Beside the inputs the host has their copies, the output copied back and the expected one, of a product in float64.
    on_host = 2 * arrays - output + (4 * output if problem.flops(case) else output)
    for what, needed, free in (
        ("host" if case.kind == "cpu" else "device", copies * (arrays + 2 * GUARD_BYTES), limits.free_bytes),
        ("host", on_host, host.free_bytes if host else None),
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
    for shared, most in (
        (kernel.static_bytes(case), limits.max_shared_bytes),
        (kernel.shared_bytes(case), limits.max_dynamic_bytes),
    ):
        if most is not None and shared > most:
            padding = f" with pad {case.pad}" if case.pad else ""
            raise UsageError(
                f"block {block}{padding}: the {case.dtype} tile of {case.kernel} takes {shared} bytes and "
                f"{case.device} has {most} per block; choose a smaller block or pad"
            )
    if limits.max_grid is None and not kernel.file:
        return
    program = kernel.build(case)  # a mistake in a user's is reported before anything is measured
    if limits.max_grid is not None and isinstance(program, GpuKernel):
        x, y = program.grid
        if x > limits.max_grid[0] or y > limits.max_grid[1]:
            raise UsageError(
                f"size {case.size} in blocks of {block}: a grid of {x} × {y} blocks is over the "
                f"limit of {limits.max_grid[0]} × {limits.max_grid[1]} on {case.device}; choose larger blocks"
            )


def _human(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**28 else f"{count / 2**20:.1f} MiB"
