"""Kernels beside their ports to another toolchain: the GPU is the same, so what differs is the compiler's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from smembench.kernels import registry
from smembench.model.case import DEFAULT_COMPILER, Case
from smembench.store.schema import Row
from smembench.toolchains.machine_code import MachineCode

Code = Callable[[Case], MachineCode | None]


@dataclass(frozen=True, slots=True)
class Build:
    """A kernel by one compiler: ms per launch, registers and bytes of local memory per thread, instructions.

    ``loop_bound`` is the share of the arithmetic peak that its main loop can reach by its instructions and their reads
    of registers. None where it was not measured, or no compiler is there to ask.
    """

    elapsed_ms: float | None = None
    registers: int | None = None
    local_bytes: int | None = None
    instructions: int | None = None
    loop_bound: float | None = None


@dataclass(frozen=True, slots=True)
class PortedCase:
    """A case by the default compiler and by that of a port.

    Attributes:
        case: the default compiler's.
        compiler: the port's.
        ours: the kernel by the default compiler.
        port: the port.
        missing: why there is nothing of the port; empty where there is.
    """

    case: Case
    compiler: str
    ours: Build
    port: Build
    missing: str = ""

    @property
    def ratio(self) -> float | None:
        """The speed of the kernel over that of the port: 1 where it is as fast."""
        if self.ours.elapsed_ms is None or self.port.elapsed_ms is None:
            return None
        return self.port.elapsed_ms / self.ours.elapsed_ms


def measured(rows: Iterable[Row], code: Code) -> list[PortedCase]:
    """Ported cases among the rows of a run, in their order; a case without a row of a port is left out.

    Args:
        rows: of one run.
        code: what a case is compiled to, for its instructions.
    """
    found = {row.case: row for row in rows}

    def build(row: Row) -> Build:
        if not row.ok:
            return Build()
        static = _build(code(row.case))
        return replace(static, elapsed_ms=row.elapsed_ms, registers=row.registers, local_bytes=row.local_bytes)

    ours = (row for row in found.values() if row.ok and row.compiler == DEFAULT_COMPILER)
    pairs = ((row, found[port]) for row in ours for port in ports_of(row.case) if port in found)
    return [
        PortedCase(row.case, port.compiler, build(row), build(port), "" if port.ok else port.reason or port.status)
        for row, port in pairs
    ]


def compiled(
    cases: Sequence[Case], code: Code, unsupported: Mapping[Case, str] = MappingProxyType({})
) -> list[PortedCase]:
    """Ported cases that were not measured, by what the compilers make of them, but for unsupported ports."""

    def pair(case: Case, port: Case) -> PortedCase:
        reason = unsupported.get(port, "")
        return PortedCase(case, port.compiler, _build(code(case)), Build() if reason else _build(code(port)), reason)

    return [pair(case, port) for case in cases for port in ports_of(case)]


def _build(found: MachineCode | None) -> Build:
    """What is known without a measurement."""
    if found is None:
        return Build()
    loop = found.loop.bound if found.loop else None
    return Build(None, found.registers, found.spilled_bytes, found.instructions, loop)


def ports_of(case: Case) -> list[Case]:
    """The same case by the compiler of each port of its kernel."""
    kernels = registry.of_name(case.problem, case.kernel, case.kind)
    return [replace(case, compiler=kernel.compiler) for kernel in kernels if kernel.port]


def names(problem: str) -> tuple[str, ...]:
    """The kernels of a problem that have a port, in teaching order."""
    ported = {kernel.name for kernel in registry.kernels() if kernel.problem == problem and kernel.port}
    return tuple(name for name in registry.names(problem) if name in ported)
