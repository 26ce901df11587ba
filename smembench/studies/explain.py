"""Explain kernels: cases from names, the GPU whose roofs apply, a trace, and the hardware's counters beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

from smembench.explain import analysis, counters
from smembench.explain.analysis import Explanation
from smembench.explain.counters import Comparison
from smembench.explain.cure import Cure, cures
from smembench.explain.occupancy import ANY_GPU, CAPABILITIES
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model import numbers
from smembench.model.case import UNIFORM, Case
from smembench.model.data_sheets import data_sheet
from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.model.hardware import MAX_THREADS
from smembench.model.problem import ITEMSIZE, Problem, Shape
from smembench.run.axes import parse_blocks, parse_ints, parse_kernels, parse_names
from smembench.run.plan import check
from smembench.run.session import locked
from smembench.store.load import load
from smembench.store.schema import Row
from smembench.toolchains.machine_code import machine_code

CAPABILITY = "9.0"
"""The compute capability if there is no GPU and none is named."""


def explainable() -> dict[str, Kernel]:
    """The CUDA kernels that can be explained, by name."""
    return {
        kernel.name: kernel
        for kernel in registry.kernels()
        if kernel.kind == "cuda" and not (kernel.port or kernel.peer)
    }


class Axes(NamedTuple):
    """Axes whose product is the cases of a kernel: lists separated by commas.

    The defaults are the first block of the kernel, and the first dtype of its problem.
    """

    blocks: str | None = None
    dtypes: str | None = None
    pads: str = "1"


class Target(NamedTuple):
    """The GPU whose roofs apply, and a compute capability; None for what is unknown."""

    device: DeviceInfo | None = None
    capability: str | None = None


USUAL = Axes()
UNKNOWN = Target()


def cases(
    kernels: str,
    axes: Axes = USUAL,
    *,
    stride: int | None = None,
    b_layout: str | None = None,
    on: Target = UNKNOWN,
    **sizes: int | None,
) -> list[Case]:
    """CUDA cases of kernels, whose names are separated by commas.

    A kernel's name determines its problem, which has ``sizes``, such as ``n``; the default is its first, and some
    depend on the GPU. A stride is between rows (matmul) or lanes (strided).

    Raises:
        UsageError: for an invalid name, block, dtype, pad, stride or layout, a size that the problem does not have, a
            block if no kernel has one to choose, and a case that its kernel, the compute capability or every GPU
            refuses.
    """
    known = explainable()
    selected = []
    names = parse_kernels(kernels, list(known), name="kernel", what="CUDA kernel")
    if axes.blocks and not any(known[name].blocks for name in names):
        raise UsageError(f"--block {axes.blocks}: {' and '.join(names)} has no block to choose; leave it out")
    for name in names:
        kernel = known[name]
        problem = PROBLEMS[kernel.problem]
        what, chosen = f"element type for {problem.name}", (kernel.dtypes or problem.dtypes)[:1]
        if axes.dtypes:
            chosen = parse_names(axes.dtypes, problem.dtypes, name="--dtype", what=what)
        what, layout = f"layout of {problem.name}'s second matrix", None
        if b_layout:
            (layout, *_) = parse_names(b_layout, problem.b_layouts, name="--b-layout", what=what)
        padding: Sequence[int | None] = [None]
        if kernel.pad is not None:
            padding = parse_ints(axes.pads, name="--pad-width", least=0) if kernel.pad else [0]
        shape = shape_of(problem, sizes)
        (parameters, *_) = problem.combinations({})
        usual = (kernel.default_blocks or problem.default_blocks)[:1]
        blocks = parse_blocks(axes.blocks) if axes.blocks and kernel.blocks else usual
        for dtype, block, pad in product(chosen, blocks, padding):
            case = Case(
                *(problem.name, name, "cuda:0", dtype, shape.m, shape.n, shape.k),
                block=block if kernel.blocks else None,
                pad=pad,
                parameters=parameters,
                b_layout=layout or problem.usual_b_layout(dtype),
            )
            if reason := kernel.refusal(case) or _refusal(kernel, case, on.capability):
                raise UsageError(reason)
            selected.append(case if stride is None else _strided(case, stride))
    multiprocessors = on.device.sm_count if on.device else None
    on_device = [PROBLEMS[case.problem].on_device(case, multiprocessors) for case in selected]
    for case in on_device:
        check(case, known[case.kernel], PROBLEMS[case.problem], ANY_GPU)
    return on_device


def shape_of(problem: Problem, sizes: Mapping[str, int | None]) -> Shape:
    """The shape of these sizes; None for a default.

    Raises:
        UsageError: for a size that is no number of at least 1, and for one that the problem does not have.
    """
    given = {size: (_size(f"--{size}", value),) for size, value in sizes.items() if value is not None}
    if unknown := [size for size in given if size not in {axis.name for axis in problem.sizes}]:
        known_sizes = " and ".join(f"--{axis.name}" for axis in problem.sizes if axis.name in sizes)
        way_out = f", only {known_sizes}" if known_sizes else "; leave it out"
        raise UsageError(f"--{unknown[0]}: {problem.name} has no such size{way_out}")
    (shape, *_) = problem.shapes(given)
    return shape


def _size(option: str, value: object) -> int:
    try:
        return numbers.size(value)
    except ValueError as error:
        raise UsageError(f"{option} {value}: {error}") from None


def _refusal(kernel: Kernel, case: Case, capability: str | None) -> str:
    """The reason that no GPU of a compute capability takes a case, with the way out, or an empty string."""
    if case.block and case.block.x * case.block.y > MAX_THREADS:
        usual = kernel.default_blocks or PROBLEMS[kernel.problem].default_blocks
        in_a_row = case.block.x <= MAX_THREADS and all(block.y == 1 for block in usual)
        way_out = f"; give {case.block.x}x1" if in_a_row else ""
        return f"--block {case.block}: a block has at most {MAX_THREADS} threads{way_out}"
    reason = kernel.refusal(case, capability)
    return f"{kernel.name}: {reason}; give --cc {kernel.needs.removesuffix('a')}" if reason else ""


def single(cases: Sequence[Case]) -> Case:
    """The only case.

    Raises:
        UsageError: if there are several.
    """
    if len(cases) > 1:
        raise UsageError(f"{len(cases)} cases: give one; only explain --measure takes several")
    return cases[0]


def _strided(case: Case, stride: int) -> Case:
    """The case with that stride.

    Raises:
        UsageError: for a kernel without a stride, or a stride that the problem does not support.
    """
    if not registry.kernel_of(case).strided:
        raise UsageError(f"--stride {stride}: {case.kernel} has no stride; leave it out")
    strided = replace(case, stride=_size("--stride", stride))
    if reason := PROBLEMS[case.problem].unsupported(strided):
        raise UsageError(f"--stride {stride}: {reason}")
    return strided


def target(run: Path | None = None, capability: str | None = None, gpu: str | None = None) -> Target:
    """The GPU whose roofs apply, of a stored run, of a data sheet or here, and its compute capability.

    A named capability means no GPU in particular, or for that of which ``gpu`` names the data sheet. The
    capability is None for a GPU whose limits are unknown.

    Raises:
        UsageError: for a run that cannot be read or has no GPU, both a run and a capability or a GPU, and an unknown
            GPU.
    """
    if capability is not None:
        try:
            capability = numbers.capability(capability)
        except ValueError as error:
            raise UsageError(f"capability {capability!r}: {error}") from None
    if gpu is not None:
        if run is not None:
            raise UsageError("--gpu and --run: give one of them; the run has the GPU that it was measured on")
        sheet = data_sheet(gpu)
        return Target(sheet, capability or sheet.compute_capability)
    device = _device(run, capability)
    return Target(device, capability or capability_of(device))


def capability_of(device: DeviceInfo | None) -> str | None:
    """The compute capability of a GPU, if its limits are known; without a GPU the usual one."""
    if device is None:
        return CAPABILITY
    return device.compute_capability if device.compute_capability in CAPABILITIES else None


def _device(run: Path | None, capability: str | None) -> DeviceInfo | None:
    if run is None:
        from smembench.devices.cuda_description import gpu_info

        return None if capability else gpu_info(0)
    if capability:
        raise UsageError("--cc and --run: give one of them; the run's GPU has its own compute capability")
    gpus = [device for device in load(run).description.devices if device.kind == "cuda"]
    if not gpus:
        raise UsageError(f"--run {run}: its run.json names no GPU; give a run that was measured on one")
    return gpus[0]


def measured(case: Case, run: Path, device: DeviceInfo) -> Row | None:
    """The case as a stored run timed it on a GPU, with a warm cache and the usual inputs if it has others, too.

    Raises:
        UsageError: for a run that cannot be read.
    """
    wanted = replace(case, device=device.name, cache="warm", inputs=UNIFORM)
    usual = PROBLEMS[case.problem].usual_inputs(case.dtype)
    rows = [row for row in load(run).rows if row.ok and replace(row.case, cache="warm", inputs=UNIFORM) == wanted]
    return min(rows, key=lambda row: (row.cache != "warm", row.inputs != usual), default=None)


def explained(case: Case, capability: str | None, multiprocessors: int | None = None) -> Explanation:
    """A trace of the case, with the registers of its machine code if a compiler is installed.

    ``multiprocessors``: of the GPU on which a persistent grid's blocks share tiles, if it is known.
    """
    return analysis.explain(case, capability, machine_code(case, capability), multiprocessors)


def counted(cases: Sequence[Case], capability: str | None, multiprocessors: int | None = None) -> list[Comparison]:
    """Predictions beside the counters of a GPU with that number of multiprocessors.

    Raises:
        UsageError: if ncu is missing or returns no figures.
        DeviceUnavailable: for a GPU that is in use.
    """
    with locked({case.device for case in cases}):
        return counters.compare(cases, capability, multiprocessors)


def next_command(case: Case, explained: Explanation) -> str:
    """The command that shows a reader of an explanation the way on; "" for none.

    Of a kernel with bank conflicts it explains its padded or swizzled twin, as the cure is, of another step of a ladder
    it shows the next step.
    """
    ladder = registry.ladder_of(case.problem)
    if (cured := cures(explained)) and (twin := _twin(case, cured[0])) and twin.split()[0] in ladder:
        block = f" --block {case.block}" if case.block is not None else ""
        dtype = f" --dtype {case.dtype}" if case.dtype != PROBLEMS[case.problem].dtypes[0] else ""
        return f"smembench explain {twin}{block}{dtype}"
    later = ladder[ladder.index(case.kernel) + 1 :] if case.kernel in ladder else ()
    steps = (registry.find(case.problem, name, "cuda") for name in later)
    step = next((kernel for kernel in steps if kernel is not None and kernel.ladder and not kernel.few), None)
    return f"smembench ladder {case.problem} --diff {step.name}" if step else ""


def _twin(case: Case, cure: Cure) -> str:
    """The kernel with the cure, and its pad; the padded one where the swizzled one does not take the block."""
    pad, name = cure.pad_bytes // ITEMSIZE[case.dtype], f"{case.problem}Swizzled"
    swizzled = registry.find(case.problem, name, "cuda")
    if cure.cures and not pad and swizzled is not None and swizzled.refusal(replace(case, kernel=name)) is None:
        return name
    return f"{case.kernel}Pad" + (f" --pad-width {pad}" if pad > 1 else "")
