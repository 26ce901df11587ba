"""Load a stored run: from its folder, from a cases.csv, or from the journal of a run that was killed."""

from __future__ import annotations

from pathlib import Path

from smembench.model.errors import UsageError
from smembench.run.axes import split
from smembench.store import journal
from smembench.store.csv_files import read_rows, read_samples
from smembench.store.files import resolved, there
from smembench.store.fleet_json import FLEET
from smembench.store.run import Run
from smembench.store.run_folder import CASES, JOURNAL, RUN, SAMPLES, read_description

LAST = "last"
"""The name of the newest run."""


def load(path: Path, *, predicted: bool = True) -> Run:
    """Read a run's folder, a cases.csv with what lies beside it, or the run that ``last`` names.

    A journal has every trial, so where there is one it is read. What it has of damages is a ``Dropped`` warning.
    It has no predictions; without ``predicted`` no kernel is imported to make them.

    Raises:
        UsageError: for a path that is neither, and for damaged files, with the line.
    """
    path = named(path)
    if not there(path):
        raise UsageError(f"{path}: there is no such file or folder; give a run's folder or a cases.csv")
    if not path.is_dir() and path.name != CASES:
        return Run(read_rows(path), path=path)  # files beside a CSV written by --csv belong to another run
    folder = path if path.is_dir() else path.parent
    if there(folder / JOURNAL):
        return _from_journal(folder, predicted=predicted)
    if not there(folder / CASES):
        fleet = "; smembench fleet show compares a fleet with earlier ones" if there(folder / FLEET) else ""
        raise UsageError(f"{folder}: holds no {CASES}; give a run's folder{fleet}")
    rows, description = read_rows(folder / CASES), read_description(folder)
    samples = read_samples(folder / SAMPLES) if there(folder / SAMPLES) else {}
    return Run(rows, description, samples, path, complete=description.complete is not False)


def named(path: Path) -> Path:
    """The newest run of a folder for ``DIR/last``, of results for ``last``; any other path as it is.

    Raises:
        UsageError: for a folder without runs.
    """
    if path.name != LAST or there(path):
        return path
    folder = path.parent if len(path.parts) > 1 else Path("results")
    runs = sorted(run.parent for run in folder.glob(f"*/{RUN}"))
    if not runs:
        raise UsageError(f"{path}: {folder} holds no run; name a run's folder")
    return max(runs, key=lambda run: (read_description(run).started_at_utc, run.name))


def root_of(path: Path) -> Path:
    """The folder of runs that a path means: itself, or the one that holds the run.

    Raises:
        UsageError: for a path that is no folder.
    """
    path = named(path)
    if not (there(path) and path.is_dir()):
        raise UsageError(f"{path}: there is no such folder; name a run's, or the one that holds the runs")
    return path.resolve().parent if (path / CASES).exists() else path


def load_side(text: str) -> list[Run]:
    """The runs of one side of a comparison: of one path, or of several separated by commas.

    Raises:
        UsageError: for a path that cannot be read, or is given twice.
    """
    found: dict[Path, Run] = {}
    for item in [text] if "," not in text or _there(text) else split(text):
        path = Path(item or text)
        if resolved(path) in found:
            raise UsageError(f"{path}: is given twice on one side; give it once")
        found[resolved(path)] = load(path)
    return list(found.values())


def _there(text: str) -> bool:
    """Whether a text is a path, not several: together those can be too long for one."""
    try:
        return there(Path(text))
    except UsageError:
        return False


def load_together(text: str) -> list[Run]:
    """Runs of one configuration: all those in a folder, or the runs of a side.

    Raises:
        UsageError: for a path that cannot be read, or is given twice.
    """
    folder = Path(text)
    inside = sorted(path.parent for path in folder.glob(f"*/{CASES}")) if _there(text) else []
    return [load(path) for path in inside] if inside and not there(folder / CASES) else load_side(text)


def _from_journal(folder: Path, *, predicted: bool) -> Run:
    """A run from its journal: every case in it, in the order in which they began.

    Raises:
        UsageError: for a journal that cannot be read, and cases that this version of smembench does not know.
    """
    path = folder / JOURNAL
    from smembench.explain.prediction import predict, trace_together
    from smembench.run.config import from_stored
    from smembench.run.runner import unseen
    from smembench.run.stop_rule import ci_widths_of
    from smembench.store.assemble import assemble

    contents = journal.read(path)
    infos = {device.name: device for device in contents.description.devices}
    ci_widths = ci_widths_of(from_stored(contents.description.config.data))
    try:
        cases = list(dict.fromkeys(trial.case for trial in contents.trials))
        if predicted:
            trace_together(cases, unseen)
        measurements = assemble(cases, contents.trials, infos, ci_widths, predict if predicted else None)
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: holds a trial that cannot be read here ({type(error).__name__}: {error})") from None
    # A run that was killed at its very end is complete and has its journal still.
    try:
        complete = read_description(folder).complete is True
    except UsageError:
        complete = False
    return Run.of(contents.description, measurements, folder, complete=complete)
