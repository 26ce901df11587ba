"""Kernels by both compilers side by side: the GPU is the same, so what differs is the compiler's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from smembench.kernels import registry
from smembench.kernels.common.cuda_c import NVRTC
from smembench.model.case import Case
from smembench.store.schema import Row
from smembench.toolchains.machine_code import MachineCode

Code = Callable[[Case], MachineCode | None]


@dataclass(frozen=True, slots=True)
class Side:
    """A kernel by one compiler: ms a launch, registers and bytes of local memory a thread, instructions of its code.

    ``loop_bound`` is the share of the arithmetic peak that its main loop can reach by its instructions and their reads
    of registers. None where it was not measured, or no compiler is there to ask.
    """

    elapsed_ms: float | None = None
    registers: int | None = None
    local_bytes: int | None = None
    instructions: int | None = None
    loop_bound: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """One case by Numba and by NVRTC; ``case`` is Numba's, and ``missing`` why there is nothing of the port."""

    case: Case
    numba: Side
    nvrtc: Side
    missing: str = ""

    @property
    def ratio(self) -> float | None:
        """The speed of Numba's kernel over that of the port: 1 where it is as fast."""
        if self.numba.elapsed_ms is None or self.nvrtc.elapsed_ms is None:
            return None
        return self.nvrtc.elapsed_ms / self.numba.elapsed_ms


def measured(rows: Iterable[Row], code: Code) -> list[Pair]:
    """Pairs among the rows of a run, in their order; a case without a row of its port is left out.

    Args:
        rows: of one run.
        code: what a case is compiled to, for its instructions.
    """
    found = {row.case: row for row in rows}

    def side(row: Row) -> Side:
        if not row.ok:
            return Side()
        found = _side(code(row.case))
        return replace(found, elapsed_ms=row.elapsed_ms, registers=row.registers, local_bytes=row.local_bytes)

    by_numba = (row for row in found.values() if row.ok and row.compiler != NVRTC)
    ports = ((row, found[port_of(row.case)]) for row in by_numba if port_of(row.case) in found)
    return [Pair(row.case, side(row), side(port), "" if port.ok else port.reason or port.status) for row, port in ports]


def compiled(cases: Sequence[Case], code: Code, refused: Mapping[Case, str] = MappingProxyType({})) -> list[Pair]:
    """Pairs of cases that were not measured, by what both compilers make of them, but for ports that are refused."""

    def pair(case: Case) -> Pair:
        port = port_of(case)
        reason = refused.get(port, "")
        return Pair(case, _side(code(case)), Side() if reason else _side(code(port)), reason)

    return [pair(case) for case in cases]


def _side(found: MachineCode | None) -> Side:
    """What is known without a measurement."""
    if found is None:
        return Side()
    loop = found.loop.bound if found.loop else None
    return Side(None, found.registers, found.spilled_bytes, found.instructions, loop)


def port_of(case: Case) -> Case:
    """The same case as CUDA C."""
    return replace(case, compiler=NVRTC)


def names(problem: str) -> tuple[str, ...]:
    """The kernels of a problem that have a port, in teaching order."""
    return tuple(name for name in registry.names(problem) if registry.find(problem, name, "cuda", NVRTC))
