"""``smembench list``: problems, kernels, lessons and devices."""

from __future__ import annotations

import typer


def list_() -> None:
    """List problems, kernels, lessons and devices."""
    from smembench.devices.select import open_device
    from smembench.kernels import registry
    from smembench.kernels.problems import PROBLEMS
    from smembench.studies.lesson import LESSONS
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
