"""The runs of one config on the same devices in a results folder: the previous ones, and surplus ones."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from smembench.model.errors import UsageError
from smembench.store.run_folder import CASES, JOURNAL, RUN, SAMPLES, read_description
from smembench.store.run_json import Description
from smembench.studies.history.read import devices_of

SUMMARY = "summary.md"
_OWN = (CASES, SAMPLES, SUMMARY, RUN)
"""The files of a run, in the order of removal. run.json is last: a folder with it is still a run."""


def runs_like(root: Path, run: Description) -> list[Path]:
    """Folders of complete runs directly in ``root`` of the same config name on the same devices, oldest first.

    A folder counts only if its name is the run's id: one that was renamed or linked to is kept. run.json alone is
    enough, so the next removal finishes one that was cut off.
    """
    return [path for _, path in _like(root, run)]


def runs_before(root: Path, run: Description, count: int) -> list[Path]:
    """The newest complete runs like this one that began before it, at most ``count``, oldest first."""
    began = (run.started_at_utc, run.run_id)
    return [path for at, path in _like(root, run) if (at, path.name) < began and (path / CASES).is_file()][-count:]


def _like(root: Path, run: Description) -> list[tuple[str, Path]]:
    """Runs like this one, with the times at which they began."""
    found = []
    for path in root.iterdir():
        if path.is_symlink() or (path / JOURNAL).exists():
            continue
        try:
            other = read_description(path)
            if other.complete and other.run_id == path.name and _alike(other, run):
                found.append((other.started_at_utc, path))
        except UsageError:
            continue  # not a run, or a damaged one: neither compared with nor removed
    return sorted(found)


def _alike(other: Description, run: Description) -> bool:
    return other.config.name == run.config.name and set(devices_of(other).items()) == set(devices_of(run).items())


def prune(
    root: Path, run: Description, keep: int, pinned: Collection[str], alarmed: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Remove the runs like this one beyond the newest ``keep``; returns notes on each, and failures.

    Args:
        root: the folder of the runs.
        run: the newest.
        keep: how many to keep, this one included.
        pinned: names of runs that are neither counted nor removed.
        alarmed: names of runs that are not removed, since a slower case is held against them.
    """
    like = [path for path in runs_like(root, run) if path.name not in pinned]
    said, failed = [], []
    for path in like[: max(len(like) - keep, 0)]:
        try:
            reason = "a slower case is held against it" if path.name in alarmed else remove(path)
            said.append(f"removed {path}" if reason is None else f"kept {path}: {reason}")
        except OSError as error:
            failed.append(f"{path}: cannot be removed ({error.strerror})")
    return said, failed


def remove(folder: Path) -> str | None:
    """Remove a run's own files and its folder; returns why it was kept, or None if it was removed.

    Nothing is removed from a folder that holds anything else.

    Raises:
        OSError: when a file cannot be removed.
    """
    if stray := sorted(path.name for path in folder.iterdir() if path.name not in _OWN):
        return f"it also holds {stray[0]}"
    for name in _OWN:
        (folder / name).unlink(missing_ok=True)
    folder.rmdir()
    return None
