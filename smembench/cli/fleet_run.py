"""``smembench fleet run``: a config on every GPU at once."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import typer

from smembench.cli import complete, options
from smembench.cli.fleet_show import judged, nothing_to_compare_with, tell
from smembench.cli.options import SECONDS, Outputs, Sampling, given, one_of
from smembench.cli.output import Opened, opened
from smembench.cli.signature import argument, flag, group, option, takes
from smembench.model.errors import INCOMPARABLE, UsageError

if TYPE_CHECKING:
    from smembench.run.config import Config
    from smembench.studies.fleet.cluster import Where
    from smembench.studies.fleet.options import Devices
    from smembench.studies.fleet.run import Finished


@group("Cluster")
class Cluster:
    """The hosts on which a fleet is measured, if not on this one alone."""

    scheduler: str = option("ADDRESS", "A Dask scheduler: tcp://…, tls://… or its file.", default="")
    hosts: int = option("N", "With --scheduler: hosts to wait for, each with a Dask worker.", min=1, default=1)
    script: bool = flag("Print a job for Slurm's sbatch that measures on all its hosts.")
    host_timeout: float = option(
        "TIME",
        "How long a host may take to join, and to answer. (default: 60s)",
        parser=SECONDS,
        show_default=False,
        default=60.0,
    )
    tls_ca: Path | None = option("FILE", "TLS: the certificate of the authority.")
    tls_cert: Path | None = option("FILE", "TLS: the certificate.")
    tls_key: Path | None = option("FILE", "TLS: its key.")

    def where(self) -> Where:
        """The Dask workers that these options mean.

        Raises:
            UsageError: for options that do not go together, and a file that is not there.
        """
        from smembench.studies.fleet.cluster import Where

        one_of(scheduler=bool(self.scheduler), script=self.script)
        tls = given(ca=self.tls_ca, cert=self.tls_cert, key=self.tls_key)
        if self.hosts > 1 and not self.scheduler:
            raise UsageError(f"--hosts {self.hosts}: goes with --scheduler; sbatch takes --nodes for a job of --script")
        if tls and not (self.scheduler or self.script):
            raise UsageError("--tls-ca, --tls-cert, --tls-key: go with --scheduler or --script")
        if "key" in tls and "cert" not in tls:
            raise UsageError("--tls-key: goes with --tls-cert")
        for name, path in tls.items():
            if not path.is_file():
                raise UsageError(f"--tls-{name} {path}: there is no such file")
        return Where(self.scheduler, self.hosts, tls)


@group("Output")
class Judged(Outputs):
    """Destinations of the verdict on the fleet."""

    force: bool = flag("Replace existing files; resume even if something differs.")


@takes(cluster=Cluster, sampling=Sampling, outputs=Judged)
def run(
    config: Path | None = argument(
        "CONFIG",
        "What to measure: a TOML file, or one of the package's configs, such as fleet or quick.",
        autocompletion=complete.configs,
    ),
    *,
    set_: list[str] | None = options.OVERRIDES,
    device: str | None = option("NAME,…", "Devices of each host: cuda:0,cuda:3 or cpu. (default: all GPUs)"),
    workers: int = option("N", "With --device cpu: processes that measure it at once.", min=1, max=1024, default=1),
    output: Path | None = option("DIR", "Where to create the fleet's folder; hosts share it. (default: results)", "-o"),
    resume: Path | None = option("DIR", "Continue a fleet: what is not complete, on each GPU."),
    anonymous: bool = flag("Store pseudonyms in place of host names and UUIDs, and no arguments."),
    stall_timeout: float | None = option(
        "TIME",
        "Kill a GPU's process after this long without progress. (default: the config's timeout and max_seconds, and "
        "60s)",
        parser=SECONDS,
    ),
    dry_run: bool = flag("Print the devices and cases."),
    cluster: Cluster,
    sampling: Sampling,
    outputs: Judged,
) -> None:
    """Measure a config on every GPU at once.

    A process per GPU measures into one folder, DIR/<UTC time>-<config>-fleet: on this host, or with --scheduler
    on the hosts of a running Dask cluster. --script prints the same as a job for Slurm. All hosts need this version of
    smembench and the same DIR. What uses the hosts' memory, such as copies, is measured on one GPU of a host at a time.

    A GPU that fails has a line with the reason, and the others finish. Each GPU has a run's folder with a journal:
    --resume continues what is not complete. Exit code 3: a GPU is slow; 1: a case or a GPU failed. If there
    is nothing yet to compare a GPU with, `smembench fleet show` ends with 5.

    Examples:

      smembench fleet run fleet
      smembench fleet run fleet --device cuda:0,cuda:3 --output /shared/results
      smembench fleet run fleet --scheduler tcp://10.0.0.1:8786
      smembench fleet run fleet --script | sbatch --nodes 16 --partition gpu
      smembench fleet run --resume results/20260101T020000Z-fleet
      smembench fleet run quick --device cpu --workers 4
    """
    from smembench.run.config import from_toml
    from smembench.store.fleet_json import read_fleet_file
    from smembench.store.run_folder import made
    from smembench.studies.fleet.cluster import slurm_script
    from smembench.studies.fleet.options import Devices, Options
    from smembench.studies.fleet.run import begin, run_fleet
    from smembench.views.fleet_progress import QUIET, watch

    for name, limit in {"stall": stall_timeout, "host": cluster.host_timeout}.items():
        if limit is not None and limit <= 0:
            raise UsageError(f"--{name}-timeout {limit:g}: give a time above 0, such as 30s")
    target = opened(outputs)
    where = cluster.where()
    devices = _devices(device, workers)
    flags = sampling.config()
    if (config is None) == (resume is None):
        raise UsageError("give a CONFIG, such as fleet or my.toml, or --resume DIR, not both")
    chosen = from_toml(config, set_ or (), flags) if config is not None else None
    if chosen is None and (set_ or flags or devices != Devices() or anonymous):
        raise UsageError(f"--resume {resume}: continues with the fleet's config and devices; leave out their options")
    if resume is not None and output is not None:
        raise UsageError(f"--output {output}: --resume {resume} continues in that folder; give one of them")
    output = output or Path("results")
    if cluster.script:
        if resume is not None:
            read_fleet_file(resume)
        words = [word for word in sys.argv[1:] if word != "--script"]
        typer.echo(slurm_script(where, words, output if resume is None else resume), nl=False)
        return
    if dry_run:
        with made(output) if chosen is not None else nullcontext():
            _dry_run(chosen, resume, where, devices, cluster.host_timeout)
        return
    argv = () if anonymous else tuple(sys.argv[1:])
    how = Options(where, cluster.host_timeout, stall_timeout, force=outputs.force, argv=argv)
    with nullcontext(QUIET) if outputs.quiet else watch() as watching:
        if chosen is not None:
            finished = begin(output, chosen, devices, how, watching, anonymous=anonymous)
        else:
            assert resume is not None
            finished = run_fleet(resume, how, watching)
    _finish(finished, target)


def _finish(finished: Finished, target: Opened) -> None:
    """Show a fleet that was measured, and exit with its exit code.

    Raises:
        SmembenchError: for what ended it before each GPU was complete or failed, and for Ctrl-C.
        typer.Exit: when a GPU is slow, or a case or a GPU failed.
    """
    from smembench.cli.measure import Interrupted
    from smembench.model.errors import SmembenchError
    from smembench.views.console import say, stderr
    from smembench.views.fleet_records import result

    verdict = judged(finished.folder)
    target.show(result(verdict), lambda: tell(verdict))
    say(stderr, f"wrote {finished.folder}")
    again = f"continue with: smembench fleet run --resume {quote(str(finished.folder))}"
    if isinstance(finished.error, KeyboardInterrupt):
        raise Interrupted(f"interrupted: what was measured is kept; {again}")
    if finished.error is not None:
        raise SmembenchError(f"{finished.error}; {again}")
    if any(member.reason for member in verdict.fleet.members):
        say(stderr, again)
    if verdict.exit_code == INCOMPARABLE:  # it was measured; as the first night, it has nothing to be compared with
        say(stderr, nothing_to_compare_with(verdict))
    elif verdict.exit_code:
        raise typer.Exit(verdict.exit_code)


def _devices(device: str | None, workers: int) -> Devices:
    from smembench.devices.select import AUTO, CPU, canonical
    from smembench.run.axes import split
    from smembench.studies.fleet.options import Devices

    names = tuple(dict.fromkeys(map(canonical, split(device)))) if device else ()
    if AUTO in names or (CPU in names and len(names) > 1):
        raise UsageError(f"--device {device}: name GPUs, such as cuda:0,cuda:3, or cpu; all GPUs are the default")
    if workers > 1 and names != (CPU,):
        raise UsageError(f"--workers {workers}: goes with --device cpu; each GPU has one process")
    return Devices(names, workers)


def _dry_run(config: Config | None, resume: Path | None, where: Where, devices: Devices, limit: float) -> None:
    from smembench.run.config import from_stored
    from smembench.store.fleet_json import read_fleet_file
    from smembench.studies.fleet.run import would_measure
    from smembench.views.console import say, stderr
    from smembench.views.fleet_progress import planned

    if resume is not None:
        content = read_fleet_file(resume)
        config = from_stored(content.config.data)
        entries = [e.model_copy(update={"state": "waiting"}) for e in content.devices if e.state != "complete"]
    else:
        assert config is not None
        entries = would_measure(where, devices, limit)
    assert config is not None
    for entry in entries:
        typer.echo("\t".join(filter(None, (entry.label, entry.model, entry.uuid, entry.reason))))
    for line in planned(config, entries):
        say(stderr, line)
