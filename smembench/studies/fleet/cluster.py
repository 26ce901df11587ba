"""Dask's side of a fleet: workers within this process, those of a running scheduler, or jobs of a queueing system."""

from __future__ import annotations

import json
import logging
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smembench.model.errors import UsageError
from smembench.model.install import extra
from smembench.model.text import one_line, visible
from smembench.store.files import read_whole

if TYPE_CHECKING:
    from distributed import Client, LocalCluster, Security

_CONNECT_SECONDS = 10
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
_NO_POLLING = "export DASK_DISTRIBUTED__DIAGNOSTICS__NVML=False"
_BEFORE_IMPORT = {"distributed.diagnostics.nvml": False}
"""Dask's own polling of the GPUs would disturb what is measured on them, and end where NVML is broken."""
_PROLOGUE, _OLD_PROLOGUE = "job_script_prologue", "env_extra"
_OLD_LISTS = (_OLD_PROLOGUE, "job_extra", "extra")
"""Options that are lists, by names that dask-jobqueue still takes and no longer configures."""
_JOB = {"job_name": "smembench", "cores": 8, "processes": 1, "memory": "8GB"}
"""What a job asks for unless --job-option says otherwise: a Dask worker with as many threads as a host has GPUs."""
_CALLED = re.compile(r"Exit code: (.*?)\nCommand:\n.*\nstdout:\n(.*)\nstderr:\n(.*)", re.DOTALL)
"""What dask-jobqueue says of a command that failed."""
_OWN: dict[str, dict[str, Any]] = {"htcondor": {"disk": "1GB"}}
"""What a queueing system asks for in place of a walltime, which it does not know."""


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
    from distributed import Client

    _silence()
    with ExitStack() as stack:
        if where.here:
            address: Any = stack.enter_context(_local(workers))
        elif where.jobqueue:
            address = stack.enter_context(_submitted(where))
        else:
            address = _address(where)
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


@contextmanager
def _submitted(where: Where) -> Iterator[Any]:
    """The cluster of a queueing system, with its jobs submitted.

    Raises:
        UsageError: if the queueing system refuses one or is not there; the others are cancelled.
    """

    async def submit() -> None:
        cluster.scale(jobs=where.jobs)
        await cluster

    with job_cluster(where) as cluster:
        try:
            cluster.sync(submit)
        except (RuntimeError, ValueError, OSError) as error:
            raise _refused(where, error) from None
        yield cluster


def job_cluster(where: Where, *, dry: bool = False) -> Any:
    """The cluster of a queueing system; it submits nothing before it is scaled.

    A ``dry`` one is there for its job script alone, and listens on the loopback interface.

    Raises:
        UsageError: for options that it does not take.
    """
    check_installed(jobqueue=True)
    import dask_jobqueue

    kind = getattr(dask_jobqueue, SYSTEMS[where.jobqueue])
    protocol = {"protocol": "tls://", "security": security(where)} if where.tls else {}
    bound = {"host": "127.0.0.1"} if dry else {}
    scheduler = {"scheduler_options": {"dashboard": False, "dashboard_address": _LOOPBACK, **bound}}
    own = _OWN.get(where.jobqueue, {"walltime": "01:00:00"})
    options = {**_JOB, **own, **scheduler, **protocol, **_job_options(where)}
    try:
        return kind(job_cls=_with_status(kind.job_cls), **options)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise _refused(where, error) from None


def _with_status(job: Any) -> type:
    """The class of jobs, with the status of one that was refused or cancelled, too.

    Dask asserts it when a cluster closes, and dask-jobqueue does not set it.
    """
    from distributed import Status

    class Job(job):  # type: ignore[misc]
        async def start(self) -> None:
            self.status = Status.failed  # until it is submitted
            await super().start()

        async def close(self) -> None:
            await super().close()
            self.status = Status.closed

    return Job


def _job_options(where: Where) -> dict[str, Any]:
    """The job's options as dask-jobqueue takes them, with a list around a text where it takes a list.

    What is to run before the worker, given or from Dask's own configuration, comes after what every job needs.
    """
    import dask

    section = where.job_options.get("config_name", where.jobqueue)

    def configured(name: str) -> Any:
        return dask.config.get(f"jobqueue.{section}.{name}", None)

    def is_list(name: str) -> bool:
        return name in _OLD_LISTS or isinstance(configured(name), list)

    given = {
        name: [value] if isinstance(value, str) and is_list(name) else value
        for name, value in where.job_options.items()
    }
    before = [given.get(name, configured(name)) or () for name in (_PROLOGUE, _OLD_PROLOGUE)]
    return {**given, _PROLOGUE: [_NO_POLLING, *(before[0] or before[1])]}


def _refused(where: Where, error: Exception) -> UsageError:
    """The error for jobs that are not taken: what the queueing system's command said, or else dask-jobqueue."""
    if found := _CALLED.search(str(error)):
        code, out, err = found.groups()
        said = err.strip() or out.strip() or f"its command ended with exit code {code}"
        text = visible(" ".join(said.split()))
    else:
        text = one_line(error).partition(". Very likely")[0]
    given = "".join(f" {name}={value}" for name, value in where.job_options.items())
    return UsageError(f"--jobqueue {where.jobqueue}{given}: {text}")


def security(where: Where) -> Security | None:
    """Dask's security options, from --tls-ca, --tls-cert and --tls-key before Dask's own configuration; None without.

    Raises:
        UsageError: if neither has the authority or a certificate.
    """
    if not where.tls:
        return None
    from distributed import Security

    files = {name: str(path.resolve()) for name, path in where.tls.items()}  # jobs may begin in another folder
    given: dict[str, str | None] = {"tls_ca_file": files["ca"]} if "ca" in files else {}
    if "cert" in files:  # with its own key, never with one from the configuration
        roles = [f"tls_{role}" for role in ("client", "scheduler", "worker")]
        given |= {f"{role}_{part}": files.get(part) for role in roles for part in ("cert", "key")}
    found = Security(require_encryption=True, **given)
    if not (found.tls_ca_file and found.tls_client_cert):
        raise UsageError("TLS needs --tls-ca and --tls-cert, or distributed.comm.tls in Dask's own configuration")
    return found


def check_installed(*, jobqueue: bool) -> None:
    """Import the packages of the extra ``fleet``; raise UsageError without them."""
    try:
        import dask

        dask.config.set(_BEFORE_IMPORT)
        import distributed  # noqa: F401

        if jobqueue:
            on_interrupt = signal.getsignal(signal.SIGINT)
            try:
                import dask_jobqueue  # noqa: F401
            finally:  # once imported, it has Ctrl-C end the process at once, with exit code 0
                signal.signal(signal.SIGINT, on_interrupt)
    except ImportError as error:
        raise UsageError(f"fleet run needs the package {error.name}: {extra('fleet')}") from None
