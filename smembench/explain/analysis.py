"""The cost of a case: wavefronts and conflicts in shared memory, sectors in global memory, occupancy, its work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import prod
from pathlib import Path

import numpy as np

from smembench.explain.costs import Costs, resident_blocks
from smembench.explain.numba_kernel import numba_kernel, passed_as
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.kinds import FEW, kinds_of_tiles
from smembench.explain.ptx.trace import Chosen
from smembench.explain.requests import WAITING
from smembench.explain.roof import Work
from smembench.explain.traffic import traffic
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import LibraryCall, NumbaKernel
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.tensor_map_argument import TensorMapArgument
from smembench.model.case import BY_ROWS, Case
from smembench.model.errors import SmembenchError, UsageError
from smembench.model.formats import carried
from smembench.toolchains.llvm import made_by
from smembench.toolchains.machine_code import MachineCode
from smembench.toolchains.numba import kernel_ptx
from smembench.toolchains.numba_function import reason
from smembench.toolchains.registry import toolchain_of

DEFAULT_CAPABILITY = "9.0"
"""The compute capability to compile for if none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Costs):
    """The costs of a case of the package, and its ``work``: what a launch has to do, for the roofs."""

    case: Case
    work: Work

    @property
    def intensity(self) -> float:
        """FLOPs per compulsory byte."""
        return self.work.flops / self.bytes_moved

    @property
    def untraced(self) -> tuple[tuple[str, str], ...]:
        """The (space, kind) of loads and stores in the machine code that no thread makes in a trace.

        Data decide them, which are 0 there, or all blocks of a launch share them out.
        """
        made = {(accesses.site.space, accesses.site.kind) for accesses in self.trace.accesses}
        accesses = () if self.code is None else (op.access for op in self.code.lined)
        compiled = {(op.space, op.kind) for op in accesses if not op.never and op.kind in ("load", "store")}
        return tuple(sorted(compiled - made))

    @property
    def waits(self) -> bool:
        """True if blocks wait for each other by repeated loads, which a trace makes once.

        Their number, and with it the sectors per global load, depends on timing.
        """
        return any(accesses.site.way == WAITING for accesses in self.trace.accesses)

    @property
    def bytes_moved(self) -> int:
        """The problem's compulsory bytes."""
        return PROBLEMS[self.case.problem].bytes_moved(self.case)


def numba_program(kernel: Kernel, case: Case) -> NumbaKernel:
    """The Numba program of a kernel, the only kind of the package's that is explained.

    Raises:
        UsageError: for a library call, and a kernel in another language.
    """
    program = kernel.build(case)
    if isinstance(program, LibraryCall):
        raise UsageError(f"{kernel.name}: is a library's copy, not a kernel with source to explain")
    if not isinstance(program, NumbaKernel):
        raise UsageError(f"{kernel.name}: {toolchain_of(program).language} is not traced, only its Numba kernel")
    return program


def explain(
    case: Case,
    capability: str | None = None,
    code: MachineCode | None = None,
    multiprocessors: int | None = None,
    *,
    quick: bool = False,
    whole: bool = False,
) -> Explanation:
    """Trace the PTX of a CUDA case and add up what its accesses cost.

    Args:
        case: of a kernel of Numba's.
        capability: for which it is compiled, and the occupancy counts; None leaves the occupancy out.
        code: the machine code, if known: it has the registers and the merged accesses.
        multiprocessors: of the GPU, whose persistent grid is launched; None for a block per tile.
        quick: whether to run few blocks, and not to look for mistakes.
        whole: whether to run all blocks of a persistent grid, which can take minutes, not some that stand for others.

    Raises:
        UsageError: for a kernel that is not Numba's, an unknown compute capability, and without NVIDIA's compilers.
    """
    kernel, problem = registry.kernel_of(case), PROBLEMS[case.problem]
    program = numba_program(kernel, case)
    grid, few = program.grid, FEW if quick else None
    kinds, persistent = None, False
    if program.tile_of is not None:
        grid, kinds = (prod(grid), 1), kinds_of_tiles(program.tile_of, grid, program.cluster, program.parts)
    elif program.persistent_blocks is not None and multiprocessors is not None:
        grid, persistent = program.on(multiprocessors).grid, True
        few = prod(grid) if whole else few
    if capability is not None:
        resident_blocks(capability, prod(program.block), 0)  # or it is unknown, and nothing compiles for it
    pad = f", pad {case.pad}" if case.pad is not None else ""
    launched = f" · block {case.block}{pad}" if case.block else ""
    layout = f", B by {case.b_layout}" if case.b_layout != BY_ROWS else ""
    path = program.function.__code__.co_filename
    try:
        text = kernel_ptx(case, program, capability or DEFAULT_CAPABILITY)
    except SmembenchError:
        raise
    except Exception as error:  # the compilers raise their own
        raise UsageError(f"{case.kernel}{reason(error, program.function)}") from None

    def traced(*, zeros: bool) -> Costs:
        ptx = numba_kernel(text)
        ptx.name = case.kernel
        passed = list(_passed(case, program, zeros=zeros))
        ptx.name_parameters([name for name, _ in passed])
        cluster = (program.cluster,) if program.cluster > 1 else None
        values = [value for _, value in passed]
        return explain_ptx(
            ptx,
            Call(grid, program.block, values, program.dynamic_bytes, cluster),
            title=case.kernel,
            filename=path,
            code=(capability, code),
            chosen=Chosen(few, kinds, not quick, persistent),
        )

    costs = traced(zeros=False)
    if costs.trace.unfollowed:  # where accesses depend on data, these are taken for zeros
        costs = traced(zeros=True)
    sizes = problem.sizes_of_arrays(case, problem.elements(case))
    asked = traffic(dict(zip(problem.arrays, sizes, strict=True)), costs.requests)
    figures = {field.name: getattr(costs, field.name) for field in fields(Costs)}
    return Explanation(
        **{
            **figures,
            "title": f"{case.kernel} in {Path(path).name}{launched} · {case.dtype}{layout}",
            "pad": case.pad or 0,
            "traffic": asked,
            "shared_bytes": kernel.shared_bytes(case),
            "compiler": made_by(text),
            "occupancy": resident_blocks(capability, costs.threads, kernel.shared_bytes(case), code),
        },
        case=case,
        work=Work(
            dtype=case.dtype,
            memory_bytes=0 if problem.memory == "shared" else problem.bytes_moved(case),
            wavefronts=sum(access.of_all for access in costs.shared)
            + sum(access.wavefronts for access in asked)
            + sum(access.wavefronts for access in costs.tiles),
            flops=problem.flops(case),
        ),
    )


def _passed(case: Case, program: NumbaKernel, *, zeros: bool) -> Iterator[tuple[str, Argument]]:
    """The arguments of a launch, as Numba passes them; with ``zeros`` as the data of all arrays."""
    problem = PROBLEMS[case.problem]
    types = [np.dtype(carried(dtype)) for dtype in problem.array_types(case)]
    for name, length, dtype in zip(problem.arrays, problem.lengths(case), types, strict=True):
        # The module's variable in constant memory has the name.
        data = np.zeros(length, dtype) if zeros else None
        yield from passed_as(f"{name}$" if name == program.constant else name, ArrayArgument((length,), dtype, data))
    yield from ((f"scalar{number}", np.uint32(value)) for number, value in enumerate(problem.scalars(case)))
    for number, tensor_map in enumerate(program.tensor_maps):
        high: tuple[int, ...] = (tensor_map.rows,)
        dtype = types[tensor_map.array]
        box: tuple[int, ...] = (tensor_map.row_bytes // dtype.itemsize, tensor_map.tile_rows)
        if tensor_map.apart > 1:
            high, box = (tensor_map.rows // tensor_map.apart, tensor_map.apart), (box[0], 1, box[1])
        described = TensorMapArgument((*high, tensor_map.columns), dtype, box, tensor_map.row_bytes, tensor_map.stride)
        yield f"{problem.arrays[tensor_map.array]}$map{number}", described
