"""Dask's side of a fleet: workers within this process or those of a running scheduler, as a job of Slurm has one."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Any

from smembench.model.errors import UsageError
from smembench.model.install import extra
from smembench.model.text import one_line
from smembench.store.files import read_whole

if TYPE_CHECKING:
    from distributed import Client, LocalCluster, Security

_CONNECT_SECONDS = 10
_LOOPBACK = "127.0.0.1:0"
_BEFORE_IMPORT = {"distributed.diagnostics.nvml": False}
"""Dask's own polling of the GPUs would disturb what is measured on them, and end where NVML is broken."""
_SLURM = """\
#!/usr/bin/env bash
#SBATCH --job-name=smembench
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
# A Dask worker on each host, with a thread per GPU or more; on the first the scheduler and what measures by them.
cd {here} && mkdir -p {shared} || exit
file={shared}/dask-$SLURM_JOB_ID.json
export DASK_DISTRIBUTED__DIAGNOSTICS__NVML=False
trap 'kill $(jobs -p); rm -f "$file"' EXIT
{dask}_scheduler --scheduler-file "$file" --port 0 {options} &
until [ -s "$file" ]; do kill -0 $! || exit; sleep 1; done
srun --cpu-bind=none {dask}_worker --scheduler-file "$file" --nthreads 16 --memory-limit 0 {options} &
{smembench} {command} --scheduler "$file" --hosts "$SLURM_JOB_NUM_NODES"
"""
"""A job that measures by Dask workers on its hosts. What sbatch is given on its command line wins over what it has."""


@dataclass(frozen=True, slots=True)
class Where:
    """Location of a fleet's Dask workers: without an address, in this process.

    Attributes:
        scheduler: address of a running scheduler, or path of its scheduler file.
        hosts: how many hosts to wait for, with a worker each.
        tls: files of certificates for ``distributed.Security``, by its names without the role: ca, cert and key.
    """

    scheduler: str = ""
    hosts: int = 1
    tls: Mapping[str, Path] = field(default_factory=dict)

    @property
    def here(self) -> bool:
        """True if all devices are this host's."""
        return not self.scheduler


@contextmanager
def connected(where: Where, workers: int) -> Iterator[Client]:
    """A client of the Dask cluster that is to measure; ``workers`` of them if they are in this process.

    Raises:
        UsageError: without the packages, and for a scheduler that does not answer.
    """
    check_installed()
    from distributed import Client

    _silence()
    with ExitStack() as stack:
        address: Any = stack.enter_context(_local(workers)) if where.here else _address(where)
        yield stack.enter_context(Client(address, security=security(where), set_as_default=False))


def _silence() -> None:
    """Keep Dask's own lines and tracebacks off stderr: what is wrong becomes a row or an error here."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _address(where: Where) -> str:
    """The address of a scheduler that answers.

    Raises:
        UsageError: if none does, with the reason.
    """
    import asyncio

    from distributed import Security
    from distributed.comm import connect

    async def reach(address: str) -> None:
        arguments = (security(where) or Security()).get_connection_args("client")
        await (await connect(address, timeout=_CONNECT_SECONDS, **arguments)).close()

    address = where.scheduler
    try:
        if Path(address).is_file():
            address = str(json.loads(read_whole(Path(address)))["address"])
        # Before there is a client, which could not be closed without one.
        asyncio.run(reach(address))
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise UsageError(
            f"--scheduler {where.scheduler}: no scheduler answers ({one_line(error)}); "
            "start one with: dask scheduler, and on each host: dask worker ADDRESS"
        ) from None
    return address


def _local(workers: int) -> LocalCluster:
    """Workers as threads of this process, each to watch one process that measures: no port but Dask's HTTP servers'.

    Those cannot be switched off, and listen on the loopback interface alone.
    """
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=False,
        protocol="inproc://",
        memory_limit=0,  # it would pause workers on a host whose memory others fill
        dashboard_address=_LOOPBACK,
        worker_dashboard_address=_LOOPBACK,
        silence_logs=50,
    )


def slurm_script(where: Where, command: Sequence[str], shared: Path) -> str:
    """The job for sbatch that runs a command of smembench by Dask workers, one on each host of the job.

    Args:
        command: its words; a scheduler and the number of hosts are added.
        shared: a folder that all hosts have, for the scheduler's file.

    Raises:
        UsageError: without the packages, and for certificates that are incomplete.
    """
    check_installed()
    security(where)
    flags = {"ca": "--tls-ca-file", "cert": "--tls-cert", "key": "--tls-key"}
    files = [word for name, path in where.tls.items() for word in (flags[name], str(path.resolve()))]
    protocol = ["--protocol", "tls", *files] if where.tls else []
    return _SLURM.format(
        here=quote(str(Path.cwd())),
        shared=quote(str(shared)),
        dask=f"{quote(sys.executable)} -m distributed.cli.dask",
        smembench=f"{quote(sys.executable)} -m smembench",
        command=join(command),
        options=join(["--dashboard-address", _LOOPBACK, *protocol]),
    )


def security(where: Where) -> Security | None:
    """Dask's security options, from --tls-ca, --tls-cert and --tls-key before Dask's own configuration; None without.

    Raises:
        UsageError: if neither has the authority or a certificate.
    """
    if not where.tls:
        return None
    from distributed import Security

    files = {name: str(path.resolve()) for name, path in where.tls.items()}  # a script may begin in another folder
    given: dict[str, str | None] = {"tls_ca_file": files["ca"]} if "ca" in files else {}
    if "cert" in files:  # with its own key, never with one from the configuration
        roles = [f"tls_{role}" for role in ("client", "scheduler", "worker")]
        given |= {f"{role}_{part}": files.get(part) for role in roles for part in ("cert", "key")}
    options = Security(require_encryption=True, **given)
    if not (options.tls_ca_file and options.tls_client_cert):
        raise UsageError("TLS needs --tls-ca and --tls-cert, or distributed.comm.tls in Dask's own configuration")
    return options


def check_installed() -> None:
    """Import the packages of the extra ``fleet``; raise UsageError without them."""
    try:
        import dask

        dask.config.set(_BEFORE_IMPORT)
        import distributed  # noqa: F401
    except ImportError as error:
        raise UsageError(f"fleet run needs the package {error.name}: {extra('fleet')}") from None
