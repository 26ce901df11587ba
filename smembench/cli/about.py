"""``smembench list`` and ``smembench doctor``: what there is, and what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def list_() -> None:
    """List problems, kernels, lessons and devices."""
    from smembench.cli.lesson import LESSONS
    from smembench.devices.select import open_device
    from smembench.kernels import registry
    from smembench.kernels.problems import PROBLEMS
    from smembench.views.console import plain, stdout

    def say(line: str) -> None:
        typer.echo(plain(stdout, line))

    for problem in PROBLEMS.values():
        say(f"{problem.name}: {problem.title}, {', '.join(problem.dtypes)}")
        for kernel in (k for k in registry.kernels() if k.problem == problem.name and not k.port):
            ports = (k.compiler for k in registry.of_name(problem.name, kernel.name, kernel.kind) if k.port)
            also = "".join(f"; also by {compiler}" for compiler in ports)
            say(f"  {kernel.kind:<5} {kernel.name:<23} {kernel.summary}{also}")
    from smembench.devices.cuda import gpu_count, why_unusable

    say("lessons:")
    for lesson, taught in LESSONS.items():
        say(f"  {lesson:<7} {taught}")
    say("devices:")
    for name in [*(f"cuda:{index}" for index in range(gpu_count())), "cpu"]:
        say(f"  {name:<7} {open_device(name).info.model}")
    if reason := why_unusable():
        say(f"  no GPU: {reason}")


def doctor(
    timing: Annotated[
        bool, typer.Option("--timing", help="Hold the timers against Nsight Compute; needs a GPU and ncu.")
    ] = False,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="PATH", help="Write the timing table as CSV.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing CSV.")] = False,
) -> None:
    """Check what is installed and say what mends what is missing.

    Exit 1 when nothing can be measured, or when the timers and ncu are apart.
    """
    from smembench.views.console import plain, stdout

    if timing:
        _timing(csv, force=force)
        return
    from smembench.studies.doctor.installation import examine

    findings = examine()
    for finding in findings:
        stdout.print(plain(stdout, f"{finding.mark:<4} {finding.what}: {finding.found}"), soft_wrap=True, markup=False)
        if finding.mend:
            stdout.print(plain(stdout, f"       mend: {finding.mend}"), soft_wrap=True, markup=False)
    if any(finding.fatal for finding in findings):
        raise typer.Exit(1)


def _timing(csv: Path | None, *, force: bool) -> None:
    from smembench.devices.select import open_device
    from smembench.run.environment import versions
    from smembench.run.session import locked
    from smembench.store.csv_files import check_writable, table_text, write_whole
    from smembench.studies.doctor.timing import compare
    from smembench.views.console import stdout
    from smembench.views.doctor import COLUMNS, records, section
    from smembench.views.table import draw

    if csv is not None:
        check_writable(csv, force=force)
    with locked(["cuda:0"]):
        info = open_device("cuda:0").info
        found = list(compare())
    libraries = ", ".join(f"{name} {version}" for name, version in versions().items() if name.startswith("numba"))
    draw(stdout, [section(found, f"{info.model} · driver {info.driver} · {libraries}")])
    if csv is not None:
        write_whole(csv, table_text(COLUMNS, records(found)))
    if not all(item.agrees for item in found):
        raise typer.Exit(1)
