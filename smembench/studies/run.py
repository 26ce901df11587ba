"""A run, from its config to stored results: every trial is on disk before the next begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

from smembench.explain.prediction import predict, trace_together
from smembench.model.device import DeviceInfo
from smembench.model.errors import DeviceUnavailable, SmembenchError, UsageError
from smembench.model.interrupts import deferred, interruptible
from smembench.model.measurement import Measurement, Status, Trial
from smembench.model.progress import unseen
from smembench.model.text import duration
from smembench.run.config import Config
from smembench.run.environment import describe_run, differences
from smembench.run.plan import Planned
from smembench.run.runner import Begin
from smembench.run.session import Session, open_session
from smembench.run.worker import Worker
from smembench.store.run import Run
from smembench.store.run_folder import RunFolder, new_run_id, resume_command
from smembench.store.run_json import Description


@dataclass(frozen=True, slots=True)
class Watch:
    """Callbacks of a run; by default they do nothing.

    ``note`` receives a line for the user, ``device`` each device once it is open, ``trial`` each trial once it is
    stored. ``progress`` is entered for each stretch of work, and yields a function to call when a case begins.
    """

    note: Callable[[str], None] = unseen
    device: Callable[[DeviceInfo], None] = unseen
    trial: Callable[[Trial], None] = unseen
    progress: Callable[[], AbstractContextManager[Begin]] = lambda: nullcontext(unseen)


SILENT = Watch()


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage of a run, and the origin that run.json records.

    Attributes:
        output: the folder in which to create the run's folder; None stores nothing.
        resume: a folder in which to continue; with ``force`` even if the environment differs.
        anonymous: leave out of run.json what identifies the machine.
        argv: the arguments that run.json records.
    """

    output: Path | None = None
    resume: RunFolder | None = None
    force: bool = False
    anonymous: bool = False
    argv: Sequence[str] = ()


UNSTORED = Storage()


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run; ``run`` has the finished cases, and so has its folder, if it has one."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


@dataclass(frozen=True, slots=True)
class Outcome:
    """The measured run, and the error that ended it before it was complete."""

    run: Run
    error: SmembenchError | RunInterrupted | None


def whole(measured: Callable[[], Outcome]) -> Run:
    """The run that ``measured`` returns, if it is complete; a Ctrl-C too late to cut it short is raised at its end.

    Raises:
        SmembenchError: what ended the run.
        RunInterrupted: on Ctrl-C.
    """
    with deferred() as hold:
        outcome = measured()
        if hold.take() and outcome.error is None:
            raise RunInterrupted("interrupted at the end of the run", outcome.run)
    if outcome.error is None:
        return outcome.run
    raise outcome.error


def run(
    config: Config,
    storage: Storage = UNSTORED,
    *,
    lock: bool = True,
    wait: bool = False,
    watch: Watch = SILENT,
    hire: Callable[[Sequence[str]], Worker] = Worker,
) -> Outcome:
    """Measure a config, add the predicted columns, and store the results.

    If something ends the run early, the outcome has the error and everything that was measured until then.

    Args:
        lock: hold the GPUs' locks; with ``wait``, wait for other processes that hold them.
        watch: callbacks for notes and progress.
        hire: starts a worker on the devices of these names.

    Raises:
        UsageError: for cases that cannot run, a folder that cannot be made, and one that does not fit the config or
            was measured in another environment.
        DeviceUnavailable: for a device that is not there or in use.
    """

    def waiting(holder: str) -> None:
        watch.note(f"waiting for {holder}, which uses the GPU")

    resume = storage.resume
    seed = resume.description.seed if resume else None
    with deferred(), open_session(config, lock=lock, wait=wait, waiting=waiting, seed=seed, hire=hire) as session:
        for note in session.notes:
            watch.note(note)
        infos = session.infos.values()
        folder = resume
        if resume is not None:
            if changed := changed_since(resume, config, session.planned, infos, force=storage.force):
                _go_on(resume, changed)
            described = resume.description
        else:
            run_id, argv = new_run_id(config.name), list(storage.argv)
            described = describe_run(run_id, config, session.seed, infos, anonymous=storage.anonymous, argv=argv)
            if storage.output is not None:
                folder = RunFolder.create(storage.output, described)
                described = folder.description
        count = sum(not item.skip for item in session.planned)
        models = ", ".join(info.model for info in infos)
        limit = (
            f"at most {duration(config.max_seconds)} of samples per case, {duration(count * config.max_seconds)} in all"
        )
        watch.note(f"cases: {count} on {models}, compiled and checked first; rounds: at least {config.rounds}; {limit}")
        with closing(folder) if folder else nullcontext():
            if unnamed := [device.name for device in described.devices if not described.identity(device.name)]:
                watch.note(
                    f"this run does not say on which device it was measured ({', '.join(unnamed)}): no state folder "
                    "can be written, such as ~/.local/state, so no other run will be compared with it"
                )
            for info in infos:
                watch.device(info)
            return _Measuring(session, described, folder, watch).outcome()


class _Measuring:
    """The trials of a run so far, and what ended it."""

    def __init__(self, session: Session, described: Description, folder: RunFolder | None, watch: Watch) -> None:
        self._session = session
        self._described = described
        self._folder = folder
        self._watch = watch
        self._trials: list[Trial] = list(folder.trials) if folder else []
        self._error: SmembenchError | None = None
        self._interrupted = False

    def outcome(self) -> Outcome:
        """Measure, predict and store."""
        self._measure()
        measurements = self._predict()
        complete = not self._interrupted and self._error is None
        path = self._folder.path if self._folder else None
        run = Run.of(self._described, measurements, path, complete=complete)
        # If the journal could not be written, nothing else is.
        if self._folder is not None and (self._error is None or isinstance(self._error, DeviceUnavailable)):
            try:
                run = self._folder.finish(measurements, complete=complete)
            except OSError as error:
                self._error = self._cannot_write(error)
        interrupted = None
        if self._interrupted:
            kept = "kept" if self._folder else "in the result, and not stored"
            interrupted = RunInterrupted(f"interrupted: what was measured is {kept}{self._again}", run)
        return Outcome(run, self._error or interrupted)

    def _measure(self) -> None:
        try:
            with self._watch.progress() as begin:
                for trial in self._session.runner.run(list(self._trials), begin):
                    self._trials.append(trial)
                    if self._folder is not None:
                        self._folder.append(trial)
                    self._watch.trial(trial)
        except KeyboardInterrupt:
            self._interrupted = True
        except DeviceUnavailable as error:
            self._error = type(error)(f"{error}{self._again}")
        except OSError as error:
            self._error = self._cannot_write(error)

    def _predict(self) -> list[Measurement]:
        """Measurements from the trials; without predictions after Ctrl-C, because traces can take minutes.

        Commands that read the run make them, from its journal.
        """
        if self._interrupted:
            return self._session.measurements(self._trials)
        try:
            with interruptible(), self._watch.progress() as begin:
                right = (trial.case for trial in self._trials if trial.status is Status.OK)
                trace_together(right, begin)
                return self._session.measurements(self._trials, predict)
        except KeyboardInterrupt:
            self._interrupted = True
            return self._session.measurements(self._trials)

    @property
    def _again(self) -> str:
        """The way to continue a run that was cut off, if it has a folder; that there is none, if it was removed."""
        if self._folder is None:
            return ""
        if not self._folder.there:
            return f"; {self._folder.path} was removed meanwhile, with what was measured"
        return f"; continue with: {resume_command(self._folder.path)}"

    def _cannot_write(self, error: OSError) -> SmembenchError:
        where = self._folder.path if self._folder else "the results"
        return SmembenchError(f"{where}: cannot be written ({error.strerror}){self._again}")


def changed_since(
    resume: RunFolder, config: Config, planned: Iterable[Planned], infos: Iterable[DeviceInfo], *, force: bool
) -> list[str]:
    """Differences from the start of a run that is to be resumed with this config, on these devices.

    Raises:
        UsageError: for a trial of a case that is not planned, and without ``force`` for what differs.
    """
    cases = {item.case for item in planned}
    if stray := [trial.case.id for trial in resume.trials if trial.case not in cases]:
        raise UsageError(f"--resume {resume.path}: has {stray[0]}, which this configuration does not plan")
    before = resume.description
    now = describe_run(before.run_id, config, before.seed or 0, infos, anonymous=before.host is None, argv=())
    changed = differences(before, now)
    if changed and not force:
        raise UsageError(
            f"--resume {resume.path}: {'; '.join(changed)}; the figures would not be comparable: "
            "start a new run, or add --force to continue and record the difference"
        )
    return changed


def _go_on(resume: RunFolder, changed: list[str]) -> None:
    try:
        resume.go_on(changed)
    except OSError as error:
        raise SmembenchError(f"{resume.path}: cannot be written ({error.strerror}); it is as it was") from None
