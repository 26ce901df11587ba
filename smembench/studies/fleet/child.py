"""The process that measures one device of a fleet: a run as any other, reported line by line on stdout.

Its argument is the device's folder; it reads a ``Job`` as JSON from stdin. Each line that it writes is JSON, too:
``{"done": 3, "of": 36, "what": "…"}`` when a trial begins, ``{}`` as another sign of life, and at the end
``{"failed": 0, "error": ""}``.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, JsonValue

from smembench.model.interrupts import ignore, install
from smembench.model.processes import die_with_parent
from smembench.model.text import one_line
from smembench.store.run_folder import JOURNAL, RunFolder, read_description

if TYPE_CHECKING:
    from smembench.model.case import Case


class Job(BaseModel):
    """A job: a stored config whose sweeps name the device.

    Attributes:
        force: resume even if the environment differs.
    """

    config: dict[str, JsonValue]
    anonymous: bool = False
    force: bool = False
    argv: list[str] = []


def main() -> None:
    """Measure a job, or go on with it, and exit with 1 for an error."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
    install()
    try:
        outcome = {"failed": measure(Path(sys.argv[1]), Job.model_validate_json(sys.stdin.buffer.read())), "error": ""}
    except BaseException as error:
        ignore()  # the fleet stops a child that SIGTERM has reached already
        outcome = {"failed": 0, "error": one_line(error) if isinstance(error, Exception) else "interrupted"}
    _tell(outcome)
    sys.exit(1 if outcome["error"] else 0)


def measure(folder: Path, job: Job) -> int:
    """Measure a job in a new run's folder below ``folder``, or what is left of it, and return how many cases failed.

    Raises:
        SmembenchError: for what ended the run before it was complete.
        KeyboardInterrupt: on Ctrl-C, once what was measured is stored.
    """
    from smembench.run.config import from_stored
    from smembench.studies.run import Storage, Watch, run

    _tell({})
    config = from_stored(job.config)
    begun = begun_run(folder, config.name)
    if begun is not None and read_description(begun).complete and not (begun / JOURNAL).exists():
        from smembench.store.load import load

        return len(load(begun, shown=False).failed)
    watch = Watch(progress=lambda: nullcontext(_begin), note=lambda line: _tell({}))
    with closing(RunFolder.resume(begun)) if begun else nullcontext() as resumed:
        outcome = run(config, Storage(folder, resumed, job.force, job.anonymous, job.argv), watch=watch)
    if outcome.error is not None:
        raise outcome.error
    return len(outcome.run.failed)


def begun_run(folder: Path, config: str) -> Path | None:
    """The newest run of a config in a device's folder; None if none was begun."""
    runs = [path for path in folder.glob(f"*-{config}") if path.name.partition("-")[2] == config]
    return max(runs, default=None)


def _begin(case: Case, number: int, of: int) -> None:
    _tell({"done": number - 1, "of": of, "what": case.kernel})


def _tell(line: Mapping[str, object]) -> None:
    with suppress(BrokenPipeError):  # the listener is gone, and this process will be
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
