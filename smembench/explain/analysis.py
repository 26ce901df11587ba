"""The cost of a case: wavefronts and conflicts in shared memory, sectors in global memory, occupancy, its work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from smembench.explain.costs import Costs, by_memory, resident_blocks
from smembench.explain.idle import idle_requests
from smembench.explain.launch import launch
from smembench.explain.requests import UNSERVED, WAITING
from smembench.explain.roof import Work
from smembench.explain.tiles import tile_traffic
from smembench.explain.trace import traceable
from smembench.explain.traffic import traffic
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import BY_ROWS, Case
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP
from smembench.toolchains.machine_code import MachineCode

MAX_PAD = 32


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
        has = {} if self.code is None else self.code.memory
        found = {(each.space, each.kind) for each in has if not each.never and each.space not in UNSERVED}
        return tuple(sorted(found - made))

    @property
    def waits(self) -> bool:
        """Whether blocks wait for each other: a trace loads once what they load until it is as they want it.

        How often that is depends on timing, and with it the sectors per global load.
        """
        return any(accesses.site.way == WAITING for accesses in self.trace.accesses)

    @property
    def bytes_moved(self) -> int:
        """The problem's compulsory bytes."""
        return PROBLEMS[self.case.problem].bytes_moved(self.case)


def explain(
    case: Case, capability: str | None = None, code: MachineCode | None = None, multiprocessors: int | None = None
) -> Explanation:
    """Trace a CUDA case and add up what its accesses cost.

    The occupancy is that of a compute capability, such as ``9.0``; None leaves it out. ``code`` is what the kernel is
    compiled to, if known: it tells registers, and which accesses the compiler merged. With the GPU's number of
    ``multiprocessors`` the blocks of a persistent grid share tiles as they do there.

    Raises:
        UsageError: for a kernel that cannot be traced, and for an unknown compute capability.
    """
    kernel, problem = registry.kernel_of(case), PROBLEMS[case.problem]
    program = traceable(kernel, case)
    threads = prod(program.block)
    warps = prod(program.grid) * -(-threads // WARP)
    shared_bytes = kernel.shared_bytes(case)
    resident = resident_blocks(capability, threads, shared_bytes, code)
    traced, requests = launch(kernel, case, code=code, multiprocessors=multiprocessors)
    sizes = problem.sizes_of_arrays(case, problem.elements(case))
    asked = traffic(dict(zip(problem.arrays, sizes, strict=True)), requests)
    accesses = by_memory(traced, requests)
    tiles = tile_traffic(traced.tiles, traced.source)
    work = Work(
        dtype=case.dtype,
        memory_bytes=0 if problem.memory == "shared" else problem.bytes_moved(case),
        wavefronts=sum(access.of_all for access in accesses.shared)
        + sum(access.wavefronts for access in asked)
        + sum(access.wavefronts for access in tiles),
        flops=problem.flops(case),
    )
    pad = f", pad {case.pad}" if case.pad is not None else ""
    launched = f" · block {case.block}{pad}" if case.block else ""
    layout = f", B by {case.b_layout}" if case.b_layout != BY_ROWS else ""
    return Explanation(
        case=case,
        title=f"{case.kernel} in {Path(traced.filename).name}{launched} · {case.dtype}{layout}",
        pad=case.pad or 0,
        trace=traced,
        **accesses._asdict(),
        traffic=asked,
        work=work,
        shared_bytes=shared_bytes,
        threads=threads,
        code=code,
        occupancy=resident,
        idle={} if code is None else idle_requests(traced, requests, code, warps),
        tiles=tiles,
    )


def best_pad(case: Case, limit: int = MAX_PAD) -> tuple[int | None, list[tuple[int, float, float]]]:
    """The smallest pad without conflicts, and every pad tried with its degrees of load and store conflicts.

    The pad is None if no pad up to ``limit`` is free of conflicts.

    Raises:
        UsageError: for a kernel whose tile is not padded.
    """
    kernel = registry.kernel_of(case)
    if not kernel.pad:
        raise UsageError(f"--best-pad: {case.kernel} has no padded tile; name a …Pad kernel, or give --best-swizzle")
    tried = []
    for pad in range(limit + 1):
        explained = explain(replace(case, pad=pad))
        loads, stores = explained.degree("load") or 1.0, explained.degree("store") or 1.0
        tried.append((pad, loads, stores))
        if loads == stores == 1.0:
            return pad, tried
    return None, tried
