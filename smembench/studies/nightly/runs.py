"""The runs of one config on a device in a results folder: the previous ones, and surplus ones."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from smembench.model.errors import UsageError
from smembench.model.text import number_of
from smembench.stats.walk import RECENT
from smembench.store.csv_files import CASES, SAMPLES
from smembench.store.files import leftovers
from smembench.store.journal import unwritten
from smembench.store.run_folder import JOURNAL, RUN, read_description
from smembench.store.run_json import Description, ahead
from smembench.studies.history.read import devices_of

READ = 400
"""Most runs before a new one that are read, over a year of nights: a slower case that nobody accepts is reported for as
long. A folder from which ``--keep`` removes runs has fewer."""
SUMMARY = "summary.md"
_OWN = (JOURNAL, CASES, SAMPLES, SUMMARY, RUN)
"""The files of a run, in the order of removal. run.json is last: a folder with it is still a run."""


def runs_like(root: Path, run: Description) -> list[tuple[Description, Path]]:
    """Complete runs directly in ``root`` of the same config name that share a device with this one, oldest first.

    run.json alone is enough, so the next removal finishes one that was cut off. A link and a run that is being written
    do not count; nor does an unfinished one, because it would change verdicts that were given when it is resumed.
    """
    runs = []
    for other, path in _of_config(root, run):
        if _alike(other, run) and not path.is_symlink():
            with unwritten(path / JOURNAL) as free:
                runs += [(other, path)] if free else []
    return sorted(runs, key=lambda one: (one[0].started_at_utc, one[1]))


def _of_config(root: Path, run: Description, *, complete: bool = True) -> Iterator[tuple[Description, Path]]:
    """Runs of the same config, or only complete ones. Those set aside are no runs: neither compared nor removed."""
    for path in root.iterdir():
        with suppress(UsageError):
            other = read_description(path)
            if (
                (other.complete or not complete)
                and other.config.name == run.config.name
                and not ahead(other.started_at_utc)
            ):
                yield other, path


def set_aside(root: Path, run: Description) -> list[str]:
    """Lines on folders that are not compared with: with a damaged run.json, and runs that claim to begin after now.

    A damaged run.json does not say of which config its run is.
    """
    damaged, late = [], []
    for path in sorted(path for path in root.iterdir() if path.is_dir()):
        try:
            other = read_description(path)
        except UsageError as error:
            damaged.append(str(error))
            continue
        like = other.config.name == run.config.name and _alike(other, run) and other.run_id != run.run_id
        if like and (why := ahead(other.started_at_utc)):
            late.append(f"{path}: {why}")
    return [_folded(lines) for lines in (damaged, late) if lines]


def _folded(lines: Sequence[str]) -> str:
    more = f" (and {len(lines) - 1} more such runs)" if len(lines) > 1 else ""
    return f"left out {lines[0]}{more}"


def _alike(other: Description, run: Description) -> bool:
    """True if a run shares a device name with another; cases on its other devices are compared with none."""
    theirs = devices_of(other)
    return any(device.id and theirs.get(name) == device for name, device in devices_of(run).items())


class Unlike(NamedTuple):
    """Ids of the runs of a config before another that are not compared with it, by the reason.

    Attributes:
        unnamed: name none of their devices, so that they are like no other run.
        elsewhere: are on other devices.
        unfinished: are on these devices, and not complete; their folders.
    """

    unnamed: Sequence[str]
    elsewhere: Sequence[str]
    unfinished: Sequence[Path]


def unlike(root: Path, run: Description) -> Unlike:
    """The earlier runs of the same config that are not compared with a run, other than those set aside."""
    unnamed: list[str] = []
    elsewhere: list[str] = []
    unfinished: list[Path] = []
    for other, path in _of_config(root, run, complete=False):
        whole = other.complete and (path / CASES).is_file()
        if _order(other) < _order(run) and _alike(other, run):
            unfinished += [] if whole else [path]
        elif _order(other) < _order(run) and whole:
            named = any(device.id for device in devices_of(other).values())
            (elsewhere if named else unnamed).append(other.run_id)
    return Unlike(sorted(unnamed), sorted(elsewhere), sorted(unfinished))


def on_a_gpu(root: Path, run: Description) -> str:
    """The newest run of this one's config before it that has a GPU, if this one has none; "" if there is none."""
    if any(device.kind == "cuda" for device in run.devices):
        return ""
    with_gpu = (other for other, _ in _of_config(root, run) if any(device.kind == "cuda" for device in other.devices))
    return max((one for other in with_gpu if (one := _order(other)) < _order(run)), default=("", ""))[1]


def _order(run: Description) -> tuple[str, str]:
    """Sort key of a run: its start, then its id."""
    return run.started_at_utc, run.run_id


def runs_before(root: Path, run: Description, count: int) -> list[Path]:
    """The newest complete runs like this one that began before it, at most ``count``, oldest first.

    What a folder is called does not matter; a run and its copies count once.
    """
    before = {
        other.run_id: path
        for other, path in runs_like(root, run)
        if _order(other) < _order(run) and (path / CASES).is_file()
    }
    return list(before.values())[-count:]


def without_left_over(paths: list[Path], spared: Collection[Path]) -> list[Path]:
    """Runs, oldest first, without the first ones if ``prune`` spares those: it may have removed the runs after them.

    Between them and the next a level may have moved little by little, which would seem a step. Whether runs were
    removed is not stored, so the newest ``RECENT`` are never left out.
    """
    others = next((place for place, path in enumerate(paths) if path not in spared), 0)
    return paths[max(min(others, len(paths) - RECENT), 0) :]


def surplus(root: Path, run: Description, folder: Path, keep: int, pinned: Iterable[Path]) -> list[Path]:
    """The runs like this one beyond it and the newest ``keep`` - 1 others, oldest first.

    Pinned runs are neither counted nor removed, nor are folders that were renamed.
    """
    spared = {folder.name, *(path.name for path in pinned)}
    like = [path for other, path in runs_like(root, run) if other.run_id == path.name and path.name not in spared]
    return like[: max(len(like) - keep + 1, 0)]


def prune(
    root: Path, run: Description, folder: Path, keep: int, pinned: Iterable[Path], alarmed: Container[str] = ()
) -> tuple[list[str], list[str]]:
    """Remove the surplus runs; returns notes on each, and failures.

    See ``surplus``. ``alarmed`` are the ids of runs that cases off their level are compared with. While there are any,
    they stay, and so do the two runs before them, as the first level is the median of three, and all after them: the
    cases that are at their level would else seem to have jumped where runs are missing. The two are looked for among
    all runs, because the oldest run of an alarm may be pinned or among those to keep, and still needs these two.
    """
    notes, failed = [], []
    paths = surplus(root, run, folder, keep, pinned)
    like = runs_like(root, run)
    stand = next((place for place, (other, _) in enumerate(like) if other.run_id in alarmed), len(like) + 2)
    standing = {path for _, path in like[max(stand - 2, 0) :]}
    if stay := [path for path in paths if path in standing]:
        more = f" and {number_of(len(stay) - 1, 'later run')}" if len(stay) > 1 else ""
        notes.append(f"kept {stay[0]}{more} beyond --keep {keep}: a case is compared with runs before it changed")
    for path in paths[: len(paths) - len(stay)]:
        try:
            reason = remove(path)
            notes.append(f"removed {path}" if reason is None else f"kept {path}: {reason}")
        except OSError as error:
            failed.append(f"{path}: cannot be removed ({error.strerror})")
    return notes, failed


def remove(folder: Path) -> str | None:
    """Remove a run's own files and its folder; returns why it was kept, or None if it was removed.

    Nothing is removed from a folder that holds anything else.

    Raises:
        OSError: when a file cannot be removed.
    """
    own = [*(left for name in _OWN for left in leftovers(folder / name)), *(folder / name for name in _OWN)]
    with unwritten(folder / JOURNAL) as free:
        if not free:
            return "it is being written"
        if stray := sorted(path.name for path in folder.iterdir() if path not in own):
            return f"it also holds {stray[0]}"
        for path in own:
            path.unlink(missing_ok=True)
        folder.rmdir()
    return None
