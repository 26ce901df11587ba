"""``smembench compilers``: Numba's kernels beside the same in CUDA C."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from smembench.cli import options
from smembench.cli.options import Running, Sampling, takes
from smembench.model.errors import DeviceUnavailable, UsageError

if TYPE_CHECKING:
    from smembench.store.run import Run
    from smembench.views.sections import Section


@takes(sampling=Sampling, running=Running)
def compilers(
    problem: Annotated[
        str, typer.Argument(metavar="[PROBLEM,…]", help="transpose, matmul, constant.")
    ] = "transpose,matmul",
    *,
    n: Annotated[
        str | None,
        typer.Option(
            "--n",
            metavar="N,…",
            help="Side of square matrices, or elements of a stencil. (default: 4096; matmul: 1024; constant: 4194304)",
        ),
    ] = None,
    block: options.Blocks = None,
    kernel: Annotated[
        str | None, typer.Option("--kernel", metavar="NAME,…", help="Kernels with a port. (default: all of them)")
    ] = None,
    dtype: options.Dtypes = None,
    device: options.Devices = None,
    static: Annotated[
        bool, typer.Option("--static", help="Only what the compilers make of them; needs no GPU.")
    ] = False,
    capability: Annotated[
        str, typer.Option("--cc", metavar="X.Y", help="With --static: compile for this compute capability.")
    ] = "9.0",
    sampling: Sampling,
    running: Running,
) -> None:
    """Time each kernel as Numba compiles it and as NVRTC compiles the same in CUDA C, in one interleaved run.

    Beside the times: registers and local memory a thread, as the driver says, shared memory a block, and the
    instructions of the machine code, where NVIDIA's compiler libraries are there. So a slow kernel is the GPU's matter
    where both are slow, and the compiler's where only one is.

    Examples:

      smembench compilers

      smembench compilers matmul --n 1024,4096 --csv compilers.csv

      smembench compilers constant --dtype float32,float64

      smembench compilers --static --cc 8.0
    """
    from smembench.cli.measure import measure
    from smembench.kernels.problems import PROBLEMS
    from smembench.run.axes import parse_names
    from smembench.run.config import from_flags
    from smembench.studies.compilers import names
    from smembench.toolchains import registry as toolchains

    chosen = parse_names(problem, [name for name in PROBLEMS if names(name)], name="PROBLEM", what="problem with ports")
    known = [name for each in chosen for name in names(each)]
    wanted = parse_names(kernel, known, name="--kernel", what="kernel with a port") if kernel else known
    sweeps = [
        options.given(
            problem=each,
            kernel=",".join(of_problem),
            n=n,
            block=block,
            dtype=dtype,
            device="cuda" if static else device or "cuda",
            compiler=",".join(toolchains.names()),
        )
        for each in chosen
        if (of_problem := [name for name in names(each) if name in wanted])
    ]
    config = from_flags({"name": "compilers", **sampling.config(), "sweep": sweeps})
    if static:
        _static(config, capability)
        return
    try:
        measure(config, running, draw=_draw)
    except DeviceUnavailable as error:
        raise DeviceUnavailable(f"{error}; --static says what both compilers make of them, without a GPU") from None


def _draw(run: Run) -> list[Section]:
    from smembench.views.compilers import of_run

    return of_run(run)


def _static(config: Any, capability: str) -> None:
    from dataclasses import replace

    from smembench.explain.occupancy import MAX_THREADS
    from smembench.model.case import DEFAULT_COMPILER
    from smembench.model.device import Limits
    from smembench.model.hardware import STATIC_SHARED_BYTES
    from smembench.run.environment import versions
    from smembench.run.plan import plan
    from smembench.studies.compilers import compiled, ports_of
    from smembench.toolchains.machine_code import machine_code
    from smembench.views.compilers import of_code
    from smembench.views.console import stdout
    from smembench.views.table import draw

    memory = Limits(free_bytes=2**62)
    blocks = replace(memory, max_threads=MAX_THREADS, max_shared_bytes=STATIC_SHARED_BYTES)
    planned = plan(config, {"cuda:0": blocks, "cpu": memory}, {"cuda:0": "cuda:0"})
    unsupported = {item.case: item.skip for item in planned if item.skip}
    cases = [item.case for item in planned if ports_of(item.case) and item.case.compiler == DEFAULT_COMPILER]
    taken = [case for case in cases if case not in unsupported]
    if not taken:
        raise UsageError(f"--static: nothing can be compiled: {unsupported[cases[0]]}")
    pairs = compiled(taken, lambda case: machine_code(case, capability), unsupported)
    if all(pair.ours.registers is None and pair.port.registers is None for pair in pairs):
        raise UsageError(
            "--static: NVIDIA's compiler libraries are not there, or do not know compute capability "
            f'{capability}; install them with: pip install "smembench[cu13]"'
        )
    draw(stdout, of_code(pairs, capability, versions(cuda=True)))
