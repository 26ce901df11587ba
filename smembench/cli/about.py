"""``smembench list`` and ``smembench doctor``: what there is, and what is missing."""

from __future__ import annotations

import typer


def list_() -> None:
    """List problems, kernels and devices."""
    from smembench.devices.select import open_device
    from smembench.kernels import registry
    from smembench.problems import PROBLEMS

    for problem in PROBLEMS.values():
        typer.echo(f"{problem.name}: {problem.title}, {', '.join(problem.dtypes)}")
        for kernel in (kernel for kernel in registry.kernels() if kernel.problem == problem.name):
            typer.echo(f"  {kernel.kind:<5} {kernel.name:<17} {kernel.summary}")
    from smembench.devices.cuda import gpu_count, why_unusable

    typer.echo("devices:")
    for name in [*(f"cuda:{index}" for index in range(gpu_count())), "cpu"]:
        typer.echo(f"  {name:<7} {open_device(name).info.model}")
    if reason := why_unusable():
        typer.echo(f"  no GPU: {reason}")


def doctor() -> None:
    """Check what is installed and say what mends what is missing. Exit 1 when nothing can be measured."""
    from smembench.doctor import examine
    from smembench.views.console import plain, stdout

    findings = examine()
    for finding in findings:
        stdout.print(plain(stdout, f"{finding.mark:<4} {finding.what}: {finding.found}"), soft_wrap=True, markup=False)
        if finding.mend:
            stdout.print(plain(stdout, f"       mend: {finding.mend}"), soft_wrap=True, markup=False)
    if any(finding.fatal for finding in findings):
        raise typer.Exit(1)
