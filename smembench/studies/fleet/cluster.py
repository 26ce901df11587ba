"""Dask's side of a fleet: workers within this process, those of a running scheduler, or jobs of a queueing system."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smembench.model.errors import SmembenchError, UsageError
from smembench.model.text import one_line

if TYPE_CHECKING:
    from distributed import Client, Security

_CONNECT_SECONDS = 30
_LOOPBACK = "127.0.0.1:0"
SYSTEMS = {
    "slurm": "SLURMCluster",
    "pbs": "PBSCluster",
    "sge": "SGECluster",
    "lsf": "LSFCluster",
    "htcondor": "HTCondorCluster",
    "oar": "OARCluster",
    "moab": "MoabCluster",
}
"""Queueing systems by name, with their classes in dask-jobqueue."""
_JOB = {"cores": 16, "processes": 1, "memory": "16GB", "walltime": "01:00:00"}
"""What a job asks for unless --job-option says otherwise: a Dask worker with as many threads as a host has GPUs."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where a fleet's Dask workers are: without an address and a queueing system, in this process.

    Attributes:
        scheduler: address of a running scheduler, or path of its scheduler file.
        jobqueue: the queueing system that starts workers; ``jobs`` of them, ``job_options`` as dask-jobqueue names
            them.
        tls: files of certificates for ``distributed.Security``, by its names without the role: ca, cert and key.
    """

    scheduler: str = ""
    jobqueue: str = ""
    jobs: int = 1
    job_options: Mapping[str, Any] = field(default_factory=dict)
    tls: Mapping[str, Path] = field(default_factory=dict)

    @property
    def here(self) -> bool:
        """Whether all devices are this host's."""
        return not self.scheduler and not self.jobqueue


@contextmanager
def connected(where: Where, workers: int) -> Iterator[Client]:
    """A client of the Dask cluster that is to measure; ``workers`` of them if they are in this process.

    Raises:
        UsageError: without the packages, for a scheduler that does not answer, and for options that a queueing system
            does not take.
    """
    check_installed(jobqueue=bool(where.jobqueue))
    import dask
    from distributed import Client

    with ExitStack() as stack:
        stack.enter_context(dask.config.set(_QUIET))
        if where.here:
            address: Any = stack.enter_context(_local(workers))
        elif where.jobqueue:
            address = stack.enter_context(job_cluster(where))
            address.scale(jobs=where.jobs)
        else:
            address = where.scheduler
        yield stack.enter_context(_client(Client, address, where))


_QUIET: dict[str, Any] = {
    "distributed.logging": {"distributed": "critical", "tornado": "critical"},
    "logging": {"distributed": "critical", "tornado": "critical"},
    "distributed.comm.timeouts.connect": f"{_CONNECT_SECONDS}s",
}


@contextmanager
def _client(client: type[Client], address: Any, where: Where) -> Iterator[Client]:
    options: dict[str, Any] = {"scheduler_file": address} if Path(str(address)).is_file() else {"address": address}
    try:
        made = client(**options, security=security(where), timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"--scheduler {where.scheduler}: no scheduler answers ({one_line(error)}); "
            "start one with: dask scheduler, and on each host: dask worker ADDRESS"
        ) from None
    try:
        yield made
    finally:
        made.close(timeout=5)


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    """Workers as threads of this process, each to watch one process that measures: no port but Dask's HTTP servers'.

    Those cannot be switched off, and listen on the loopback interface alone.
    """
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=False,
        protocol="inproc://",
        memory_limit=0,  # it would pause workers on a host whose memory others fill
        dashboard_address=_LOOPBACK,
        worker_dashboard_address=_LOOPBACK,
        silence_logs=50,
    ) as cluster:
        yield cluster


def job_cluster(where: Where) -> Any:
    """The cluster of a queueing system; it submits nothing before it is scaled.

    Raises:
        UsageError: for options that it does not take.
    """
    check_installed(jobqueue=True)
    import dask_jobqueue

    kind = getattr(dask_jobqueue, SYSTEMS[where.jobqueue])
    protocol = {"protocol": "tls://", "security": security(where)} if where.tls else {}
    scheduler = {"scheduler_options": {"dashboard": False, "dashboard_address": _LOOPBACK}}
    try:
        return kind(**{**_JOB, **scheduler, **protocol, **where.job_options})
    except (TypeError, ValueError, OSError) as error:
        given = " ".join(f"{name}={value}" for name, value in where.job_options.items())
        raise UsageError(f"--jobqueue {where.jobqueue} {given}: {one_line(error)}") from None


def security(where: Where) -> Security | None:
    """Dask's security options from --tls-ca, --tls-cert and --tls-key; None leaves them to Dask's own configuration."""
    if not where.tls:
        return None
    from distributed import Security

    files = {name: str(path) for name, path in where.tls.items()}
    roles = {
        f"tls_{role}_{part}": files.get(part) for role in ("client", "scheduler", "worker") for part in ("cert", "key")
    }
    return Security(require_encryption=True, tls_ca_file=files.get("ca"), **roles)


def check_installed(*, jobqueue: bool) -> None:
    """Raise UsageError without the packages of the extra ``fleet``."""
    try:
        import distributed  # noqa: F401

        if jobqueue:
            import dask_jobqueue  # noqa: F401
    except ImportError as error:
        raise UsageError(f"fleet run needs the package {error.name}: pip install 'smembench[fleet]'") from None


def lost(client: Client) -> SmembenchError | None:
    """The error for a scheduler that is gone; None while it is there."""
    if client.status == "running":
        return None
    return SmembenchError("the scheduler of Dask was lost; what was measured is kept")


def addresses(client: Client) -> Sequence[str]:
    """The addresses of all workers now."""
    return list(client.nthreads())
