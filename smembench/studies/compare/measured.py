"""Runs of one configuration, measured to be compared with each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from smembench.run.config import Config
from smembench.store.run_folder import new_run_id
from smembench.studies.run import SILENT, Outcome, Storage, Watch, run


def measured(
    config: Config, runs: int, output: Path, *, anonymous: bool = False, argv: Sequence[str] = (), watch: Watch = SILENT
) -> Iterator[Outcome]:
    """Measure a configuration several times, each run into a folder of its own inside a new one of ``output``."""
    folder = output / new_run_id(f"{config.name}-aa")
    for number in range(1, runs + 1):
        watch.note(f"run {number} of {runs}")
        # Numbered, so that two runs that begin in the same second have folders of their own.
        numbered = config.model_copy(update={"name": f"{config.name}-{number}"})
        yield run(numbered, Storage(folder, anonymous=anonymous, argv=argv), wait=True, watch=watch)
