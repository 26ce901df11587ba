"""``smembench doctor``: what is installed, what is missing, and whether the timers are right."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path

from smembench.cli import complete
from smembench.cli.options import Outputs
from smembench.cli.output import Opened, only_json, opened
from smembench.cli.signature import flag, option, takes
from smembench.model.errors import SmembenchError, UsageError
from smembench.model.text import number_of


@takes(outputs=Outputs)
def doctor(
    *,
    timing: bool = flag("Compare the timers with Nsight Compute or CUPTI; needs a GPU."),
    config: Path | None = option(
        "CONFIG",
        "With --timing, compare the cases of a config, such as kernels of your own, instead of the package's.",
        autocompletion=complete.configs,
    ),
    outputs: Outputs,
) -> None:
    """Check what is installed; print the command for what is missing.

    With cupti-python (the extra cupti) --timing also has the times of CUPTI's kernel records, alone where there is no
    ncu. Exit code 1 means that nothing can be measured, or that the timers disagree with ncu.

    Examples:

      smembench doctor
      smembench doctor --timing
      smembench doctor --timing --config mine.toml
    """
    if timing:
        _timing(opened(outputs), config)
        return
    if config is not None:
        raise UsageError(f"--config {config}: goes with --timing")
    target = opened(outputs, but=only_json("goes with --timing"))
    from smembench.studies.doctor.installation import examine
    from smembench.views.doctor import lines

    checks = examine()
    target.show_lines(lines(checks), checks=[asdict(check) for check in checks])
    if broken := [check for check in checks if check.fatal]:
        raise SmembenchError(f"nothing can be measured: {broken[0].what}: {broken[0].state}")


def _timing(target: Opened, config: Path | None) -> None:
    from smembench.devices.select import open_device
    from smembench.run.config import from_toml
    from smembench.run.environment import versions
    from smembench.run.session import locked
    from smembench.studies.doctor.timing import CASES, Agreement, cases_of, compare
    from smembench.views.console import notes, say
    from smembench.views.doctor import section, timing_records
    from smembench.views.export import Result

    with locked(["cuda:0"]):
        cases = CASES if config is None else cases_of(from_toml(config))
        info = open_device("cuda:0").info
        agreements: list[Agreement] = []
        try:
            agreements.extend(compare(cases, partial(say, notes)))
        finally:  # what was measured until then is written, also after Ctrl-C
            if agreements:
                records = timing_records(agreements)
                data = {"device": info.known, "timings": records}
                target.show(
                    Result(sections=[section(agreements, info, versions())], data=lambda: data, rows=lambda: records)
                )
    if others := sum(item.agrees is False for item in agreements):
        raise SmembenchError(f"{others} of {number_of(len(agreements), 'median')} differ from Nsight Compute's")
