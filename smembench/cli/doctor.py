"""``smembench doctor``: what is installed, what is missing, and whether the timers are right."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from smembench.cli.options import Outputs, one_of
from smembench.cli.output import Opened, only_json, opened
from smembench.cli.signature import takes
from smembench.model.errors import SmembenchError, UsageError
from smembench.model.text import number_of


@takes(outputs=Outputs)
def doctor(
    *,
    timing: Annotated[
        bool, typer.Option("--timing", help="Compare the timers with Nsight Compute; needs a GPU and ncu.")
    ] = False,
    conflicts: Annotated[
        bool,
        typer.Option("--conflicts", help="Check the rules of bank conflicts on random requests; needs a GPU and ncu."),
    ] = False,
    requests: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="With --conflicts: how many, besides a few of other instructions. (default: 1000)"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="With --conflicts: the seed of the requests. (default: a new one)")
    ] = None,
    outputs: Outputs,
) -> None:
    """Check what is installed, and print the command that fixes what is missing.

    Exit code 1 means that nothing can be measured, or that the timers or the predictions of explain disagree with ncu.

    Examples:

      smembench doctor
      smembench doctor --timing
      smembench doctor --conflicts --requests 2000 --export requests.csv
    """
    one_of(timing=timing, conflicts=conflicts)
    if conflicts:
        _conflicts(requests or 1000, seed, opened(outputs))
        return
    for option, given in {"--requests": requests, "--seed": seed}.items():
        if given is not None:
            raise UsageError(f"{option} {given}: goes with --conflicts")
    if timing:
        _timing(opened(outputs))
        return
    target = opened(outputs, but=only_json("goes with --timing or --conflicts"))
    from smembench.studies.doctor.installation import examine
    from smembench.views.doctor import lines

    found = examine()
    target.show_lines(lines(found), checks=[asdict(check) for check in found])
    if broken := [check for check in found if check.fatal]:
        raise SmembenchError(f"nothing can be measured: {broken[0].what}: {broken[0].found}")


def _timing(target: Opened) -> None:
    from smembench.devices.select import open_device
    from smembench.run.environment import versions
    from smembench.run.session import locked
    from smembench.studies.doctor.timing import compare
    from smembench.views.doctor import section, timing_records
    from smembench.views.export import Result

    with locked(["cuda:0"]):
        info = open_device("cuda:0").info
        found = list(compare())
    records = timing_records(found)
    data = {"device": info.known, "timings": records}
    target.show(Result(sections=[section(found, info, versions())], data=lambda: data, rows=lambda: records))
    if others := sum(not item.agrees for item in found):
        raise SmembenchError(f"{others} of {number_of(len(found), 'median')} differ from Nsight Compute's")


def _conflicts(requests: int, seed: int | None, target: Opened) -> None:
    from random import SystemRandom

    from smembench.cli.measure import Interrupted
    from smembench.devices.cuda import gpu_info, why_unusable
    from smembench.model.errors import DeviceUnavailable
    from smembench.run.session import locked
    from smembench.studies.doctor.conflicts import Counted, compare, failures
    from smembench.views.console import notes, say
    from smembench.views.doctor_conflicts import count_records, request_records, sections
    from smembench.views.export import Result
    from smembench.views.progress import counts

    drawn_by = SystemRandom().randrange(10**6) if seed is None else seed
    found: list[Counted] = []
    interrupted = False
    with locked(["cuda:0"]):
        info = gpu_info(0)  # without a context, which would share the GPU with what is counted
        if info is None:
            raise DeviceUnavailable(f"device cuda: {why_unusable()} (see: smembench doctor)")
        with counts() as done:
            counted = compare(drawn_by, requests, info.compute_capability or "", done)
            say(notes, f"random requests of --seed {drawn_by} under ncu")
            try:
                found.extend(counted)
            except KeyboardInterrupt:
                interrupted = True
    tables = sections(found, info, drawn_by) if found else []
    data = {"device": info.known, "seed": drawn_by, "conflicts": count_records(found)}
    target.show(Result(sections=tables, data=lambda: data, rows=lambda: request_records(found)))
    if interrupted:
        raise Interrupted(f"interrupted: {len(found)} requests were counted")
    if wrong := failures(found):
        raise SmembenchError(f"{number_of(len(wrong), 'request')} not counted as predicted")
