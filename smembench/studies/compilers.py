"""Kernels beside their ports to other toolchains: on the same GPU, differences come from the compiler."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from smembench.explain.occupancy import ANY_GPU
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import ENGINES, Case
from smembench.model.device import Limits
from smembench.model.errors import UsageError
from smembench.model.install import CUDA
from smembench.run.axes import parse_kernels, parse_names
from smembench.run.config import Config
from smembench.run.environment import git_revision, versions
from smembench.run.plan import Plan
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.studies.difference import Ratio, ratio
from smembench.toolchains import nvrtc
from smembench.toolchains import registry as toolchains
from smembench.toolchains.machine_code import MachineCode, machine_code
from smembench.toolchains.registry import Refused, default_compiler

Code = Callable[[Case], MachineCode | None]


@dataclass(frozen=True, slots=True)
class Build:
    """A kernel by one compiler: ms per launch, registers and bytes of local memory per thread, instructions.

    ``loop_bound`` is the share of the arithmetic peak that the main loop can reach, given its instructions and register
    bank conflicts. Fields are None if they were not measured, or if no compiler is installed.
    """

    elapsed_ms: float | None = None
    registers: int | None = None
    local_bytes: int | None = None
    instructions: int | None = None
    loop_bound: float | None = None


@dataclass(frozen=True, slots=True)
class PortedCase:
    """A ``case`` by the default engine, ``ours``, and by the ``compiler`` of a port, ``port``.

    ``missing`` says why the port has no figures; it is empty if it has. ``ratio`` is how many times as fast the kernel
    is as the port.
    """

    case: Case
    compiler: str
    ours: Build
    port: Build
    missing: str = ""
    ratio: Ratio | None = None


def problems() -> list[str]:
    """The problems whose kernels have ports."""
    return [name for name in PROBLEMS if names(name)]


def sweeps(problem: str, kernel: str | None = None, **axes: object) -> list[dict[str, object]]:
    """The sweeps of a config that measures kernels and their ports, one for each problem.

    Names are separated by commas; without a kernel all that have a port are meant. ``axes`` are other keys of the
    sweeps; those that are None are left out.

    Raises:
        UsageError: for a problem without ports, and a kernel without one.
    """
    chosen = parse_names(problem, problems(), name="PROBLEM", what="problem with ports")
    known = [name for one in chosen for name in names(one)]
    wanted = parse_kernels(kernel, known, what="kernel with a port") if kernel else known
    given = {name: value for name, value in axes.items() if value is not None}
    compiler = ",".join(_installed())
    return [
        {"problem": one, "kernel": ",".join(of_problem), "compiler": compiler, **given}
        for one in chosen
        if (of_problem := [name for name in names(one) if name in wanted])
    ]


def of_stored(run: Run) -> tuple[list[PortedCase], list[str]]:
    """Ported cases of a run, and what compiled it but differs here; if anything does, instructions are left out."""
    capabilities = {device.name: device.compute_capability for device in run.description.devices}
    others = _other_makers(run.description, {row.compiler for row in run.rows})

    def code(case: Case) -> MachineCode | None:
        known = registry.find(case.problem, case.kernel, case.kind, case.compiler)
        return machine_code(case, capabilities.get(case.device)) if known and not others else None

    return measured(run, code), others


def _other_makers(run: Description, used: Collection[str]) -> list[str]:
    there, here = run.versions, versions(cuda=True)
    makers = (name for toolchain in toolchains.compilers() if toolchain.name in used for name in toolchain.makers)
    names = ("smembench", *dict.fromkeys(makers))
    changed = [f"{name} {there[name]}" for name in names if name in there and there[name] != here.get(name)]
    made, is_here = (state.revision if state else "" for state in (run.git, git_revision()))
    if made and is_here and made != is_here:
        changed.append(f"revision {made[:7]}")
    return changed


def static(config: Config, capability: str) -> list[PortedCase]:
    """The ported cases of a config, compiled for a compute capability; needs no GPU.

    Raises:
        UsageError: when no case can be compiled, for a capability that NVRTC does not know, and without NVIDIA's
            compiler libraries.
    """
    if (known := nvrtc.capabilities()) and capability not in known:  # other compilers print what they do not know
        raise UsageError(f"--cc {capability}: NVIDIA's compilers here know {', '.join(known)}")
    plan = Plan.of(config, {"cuda:0": "cuda:0"})
    planned = list(plan.cases({"cuda:0": ANY_GPU, "cpu": Limits(ANY_GPU.free_bytes)}))
    unsupported = {item.case: item.skip for item in planned if item.skip}
    default = default_compiler()
    ported = {replace(item.case, compiler=default) for item in planned if toolchains.named(item.case.compiler)}
    cases = [item.case for item in planned if item.case in ported]
    taken = [case for case in cases if case not in unsupported]
    if not taken:
        raise UsageError(f"--static: nothing can be compiled: {unsupported[cases[0]]}")
    pairs = compiled(taken, lambda case: machine_code(case, capability), unsupported)
    if all(pair.ours.registers is None and pair.port.registers is None for pair in pairs):
        raise UsageError(f"--static: NVIDIA's compiler libraries are not there: {CUDA}")
    return pairs


def measured(run: Run, code: Code) -> list[PortedCase]:
    """Ported cases among the rows of a run, in their order; cases without a row for the port are left out.

    A stored run has ports that are no longer in the registry, too. ``code`` compiles a case, to count its instructions.
    """
    rows = {row.case: row for row in run.rows}

    def build(case: Case) -> Build:
        row = rows[case]
        return replace(
            _build(code(case)), elapsed_ms=row.elapsed_ms, registers=row.registers, local_bytes=row.local_bytes
        )

    names = sorted({case.compiler for case in rows if toolchains.named(case.compiler)})
    pairs: list[tuple[Case, Case]] = []
    for engine in ENGINES:  # the first that has a port beside it
        ours = [row.case for row in rows.values() if row.ok and row.compiler == engine]
        ports = ((case, replace(case, compiler=name)) for case in ours for name in names if name != engine)
        pairs = pairs or [(case, port) for case, port in ports if port in rows]
    cases = _paired(pairs, build, {row.case: row.reason or row.status for row in rows.values() if not row.ok})
    return [
        replace(ported, ratio=ratio(run, rows[replace(ported.case, compiler=ported.compiler)], rows[ported.case]))
        for ported in cases
    ]


def compiled(
    cases: Sequence[Case], code: Code, unsupported: Mapping[Case, str] = MappingProxyType({})
) -> list[PortedCase]:
    """Ported cases by their machine code alone, of installed toolchains; unsupported ports have no figures."""
    pairs = [(case, port) for case in cases for port in ports_of(case) if port.compiler in _installed()]
    return _paired(pairs, lambda case: _build(code(case)), unsupported)


def _paired(
    pairs: Iterable[tuple[Case, Case]], build: Callable[[Case], Build], missing: Mapping[Case, str]
) -> list[PortedCase]:
    def paired(case: Case, port: Case) -> PortedCase:
        ours, reason = build(case), missing.get(port, "")
        try:
            return PortedCase(case, port.compiler, ours, Build() if reason else build(port), reason)
        except Refused as refused:
            return PortedCase(case, port.compiler, ours, Build(), str(refused))

    return [paired(case, port) for case, port in pairs]


def _build(code: MachineCode | None) -> Build:
    """The figures that need no measurement."""
    if code is None:
        return Build()
    loop = code.loop.bound if code.loop else None
    return Build(None, code.registers, code.spilled_bytes, code.instructions, loop)


def ports_of(case: Case) -> list[Case]:
    """The same case by the compiler of each port of its kernel."""
    kernels = registry.of_name(case.problem, case.kernel, case.kind)
    return [replace(case, compiler=one.compiler) for one in kernels if one.port and one.compiler != case.compiler]


def names(problem: str) -> tuple[str, ...]:
    """The kernels of a problem that several installed toolchains take, in the order of the lesson."""
    others = {*_installed()} - {default_compiler()}
    ports = (kernel for kernel in registry.of_problem(problem) if kernel.port and kernel.compiler in others)
    return tuple(dict.fromkeys(kernel.name for kernel in ports))


def _installed() -> tuple[str, ...]:
    """Names of the toolchains that are installed, the default first."""
    return tuple(toolchain.name for toolchain in toolchains.compilers() if toolchain.installed)
