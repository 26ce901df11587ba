"""``smembench compilers``: kernels beside their ports to other toolchains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.cli import complete, options
from smembench.cli.options import Running, Sampling
from smembench.cli.output import opened
from smembench.cli.signature import argument, flag, option, takes
from smembench.model.errors import DeviceUnavailable, UsageError

if TYPE_CHECKING:
    from smembench.views.sections import Section


@takes(sampling=Sampling, running=Running)
def compilers(
    problem: str = argument(
        "PROBLEM,…",
        "Problems, such as transpose and matmul.",
        autocompletion=complete.problems,
        default="transpose,matmul",
    ),
    *,
    n: str | None = options.SIDES,
    block: str | None = options.BLOCKS,
    kernel: str | None = option("NAME,…", "Kernels with a port. (default: all of them)"),
    dtype: str | None = options.DTYPES,
    device: str | None = options.DEVICES,
    static: bool = flag("Only compile and compare the machine code; needs no GPU."),
    capability: str = option(
        "X.Y", "With --static: the compute capability to compile for.", "--cc", parser=options.CAPABILITY, default="9.0"
    ),
    sampling: Sampling,
    running: Running,
) -> None:
    """Time kernels beside their ports to other toolchains.

    The ports, where installed: CUDA C by NVRTC, the same Python by numba-cuda-mlir, and Triton. The table also has the
    registers and local memory per thread that the driver reports, shared memory per block, and, if NVIDIA's compiler
    libraries are installed, the number of machine instructions. If all versions are slow, the GPU limits the kernel; if
    only one is, its compiler does.

    Examples:

      smembench compilers
      smembench compilers matmul --n 1024,4096 --export compilers.csv
      smembench compilers constant --dtype float32,float64
      smembench compilers --static --cc 8.0
    """
    from smembench.cli.measure import measure
    from smembench.run.config import from_flags
    from smembench.run.environment import versions
    from smembench.studies import compilers as study
    from smembench.toolchains.registry import compilers as toolchains
    from smembench.views.compilers import builds, of_run
    from smembench.views.compilers import compilers as ports
    from smembench.views.console import notes, say
    from smembench.views.export import Result

    def shown(tables: list[Section]) -> list[Section]:
        """The tables, after a line for each package whose absence leaves something out of them."""
        for toolchain in toolchains():
            if missing := toolchain.not_installed():
                say(notes, missing)
        return tables

    where = "cuda" if static else device or "cuda"
    sweeps = study.sweeps(problem, kernel, n=n, block=block, dtype=dtype, device=where)
    config = from_flags({"name": "compilers", **sampling.config(), "sweep": sweeps})
    if static:
        if running.dry_run:
            raise UsageError("--dry-run: belongs to a measurement; --static measures nothing")
        target = opened(running)
        pairs = study.static(config, capability)
        sections = shown(ports(pairs, f"compute capability {capability}", versions(cuda=True)))
        target.show(Result(sections=sections, data=lambda: {"cases": builds(pairs)}, rows=lambda: builds(pairs)))
        return
    try:
        measure(config, running, draw=lambda run: shown(of_run(run)))
    except DeviceUnavailable as error:
        raise DeviceUnavailable(f"{error}; --static compares the machine code without a GPU") from None
