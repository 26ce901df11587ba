"""``smembench run``: a config from a TOML file, measured into a folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from smembench.cli import complete, options
from smembench.cli.nightly import Deciding, Nightly, after
from smembench.cli.options import Running, Sampling
from smembench.cli.signature import argument, flag, option, takes
from smembench.model.errors import UsageError

if TYPE_CHECKING:
    from smembench.store.run import Run
    from smembench.views.sections import Section


@takes(sampling=Sampling, running=Running, nights=Nightly, deciding=Deciding)
def run(
    config: Path | None = argument(
        "CONFIG",
        "What to measure: a TOML file, or one of the package's configs, such as quick or nightly.",
        autocompletion=complete.configs,
    ),
    *,
    set_: list[str] | None = options.OVERRIDES,
    output: Path | None = option("DIR", "Where to create the run's folder. (default: results)", "-o"),
    resume: Path | None = option("DIR", "Resume an interrupted run: its folder, or `last`."),
    anonymous: bool = flag("Leave host name, UUIDs and arguments out of run.json."),
    sampling: Sampling,
    running: Running,
    nights: Nightly,
    deciding: Deciding,
) -> None:
    """Measure a config and store the run in a folder.

    The folder, DIR/<UTC time>-<config>, gets cases.csv, samples.csv and run.json. Each trial is on disk before the next
    begins. A run of many tables is summarised; `smembench show` has its tables.

    --resume continues an interrupted run and needs no CONFIG. It ends with an error if the device, the driver, a
    version, the code, a setting such as NUMBA_OPT, a file of SMEMBENCH_KERNELS or a given CONFIG differs; --force
    continues anyway, and run.json records the difference. With the nightly options a complete run also gets a
    summary.md, and the exit code is 3 if a case is slower, otherwise 1 if one failed or is missing, otherwise 5 if none
    of the earlier runs could be compared. A slower case is reported every night until it is as fast as before or
    accepted with `smembench accept`.

    --decide measures the ambiguous cases of a stored run again, in up to five runs, each with all that are undecided.
    A case that stays ambiguous gets the slowdown from which on it would have been called slower.

    Examples:

      smembench run quick
      smembench run nightly --set samples=50 --output results
      smembench run --resume results/20260101T020000Z-nightly
      smembench run my.toml --compare-to last:7 --keep 90
      smembench run --decide results/20260101T020000Z-nightly
    """
    from smembench.cli.measure import measure
    from smembench.run.config import from_stored, from_toml
    from smembench.store.load import named
    from smembench.store.run_folder import RunFolder, made

    if deciding.decide is not None:
        running.check_nvtx("--decide")
        if config is not None or resume is not None or output is not None or set_ or sampling.config():
            raise UsageError(
                f"--decide {deciding.decide}: takes the run's own config and folder; leave CONFIG, --resume, "
                "--output and --set out"
            )
        deciding.measured(deciding.decide, nights, running)
        return
    if deciding.max_minutes is not None:
        raise UsageError(f"--max-minutes {deciding.max_minutes:g}: belongs to --decide RUN")
    flags = sampling.config() | ({} if nights.threshold is None else {"threshold": nights.threshold})
    given = from_toml(config, set_ or (), flags) if config is not None else None
    if resume is not None:
        if output is not None:
            raise UsageError(f"--output {output}: --resume {resume} continues in that folder; give one of them")
        if given is None and nights.threshold is not None and nights.compare_to is None:
            raise UsageError(f"--threshold {nights.threshold:g}: belongs to CONFIG or --compare-to")
        if given is None and (set_ or sampling.config()):
            raise UsageError(
                f"--resume {resume}: continues with the stored config; --set and sampling options need a CONFIG"
            )
        resume = named(resume)
        with closing(RunFolder.resume(resume)) as folder:
            chosen = given or from_stored(folder.description.config.data, tuple(folder.description.kernels))
            then = after(nights, resume.resolve().parent, chosen.name, chosen.threshold)
            measure(chosen, running, resume=folder, draw=_brief, after=then)
    elif given is not None:
        output = output or Path("results")
        with made(output):  # --json-lines and --openmetrics may name a file in it
            then = after(nights, output, given.name, given.threshold)
            measure(given, running, output=output, anonymous=anonymous, draw=_brief, after=then)
    else:
        raise UsageError("give a CONFIG, such as quick or my.toml, or --resume DIR or --decide RUN")


def _brief(measured: Run) -> list[Section]:
    from smembench.views.summary import brief

    return brief(measured)
