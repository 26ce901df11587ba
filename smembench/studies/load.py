"""Load a stored run: from its folder, from a cases.csv, or from the journal of a run that was killed."""

from __future__ import annotations

from pathlib import Path

from smembench.model.errors import UsageError
from smembench.run.axes import split
from smembench.store import journal
from smembench.store.csv_files import read_rows, read_samples
from smembench.store.run import Run
from smembench.store.run_folder import CASES, JOURNAL, SAMPLES, read_description
from smembench.store.run_json import Description


def load(path: Path) -> Run:
    """Read a run's folder, or a cases.csv with what lies beside it.

    Raises:
        UsageError: for a path that is neither, and for damaged files, with the line.
    """
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder; give a run's folder or a cases.csv")
    if path.is_dir() and not (path / CASES).exists():
        return _cut_off(path)
    folder = path if path.is_dir() else path.parent
    rows = read_rows(path / CASES if path.is_dir() else path)
    # Files beside a CSV written by --csv belong to another run.
    own = path.is_dir() or path.name == CASES
    description = read_description(folder) if own else Description()
    samples = read_samples(folder / SAMPLES) if own and (folder / SAMPLES).exists() else {}
    return Run(rows, description, samples, path, complete=description.complete is not False)


def load_side(text: str) -> list[Run]:
    """The runs of one side of a comparison: of one path, or of several separated by commas.

    Raises:
        UsageError: for a path that cannot be read, or is given twice.
    """
    found: dict[Path, Run] = {}
    for item in [text] if Path(text).exists() else split(text):
        path = Path(item or text)
        if path.resolve() in found:
            raise UsageError(f"{path}: is given twice on one side; give it once")
        found[path.resolve()] = load(path)
    return list(found.values())


def load_together(text: str) -> list[Run]:
    """Runs of one configuration: all those in a folder, or the runs of a side.

    Raises:
        UsageError: for a path that cannot be read, or is given twice.
    """
    folder = Path(text)
    inside = sorted(path.parent for path in folder.glob(f"*/{CASES}")) if folder.is_dir() else []
    return [load(path) for path in inside] if inside and not (folder / CASES).exists() else load_side(text)


def _cut_off(folder: Path) -> Run:
    """A run without a cases.csv, from its journal: every case in it, in the order in which they began.

    Raises:
        UsageError: for a folder without a journal, a journal that cannot be read, and cases that this version of
            smembench does not know.
    """
    path = folder / JOURNAL
    if not path.exists():
        raise UsageError(f"{folder}: holds no {CASES}; give a run's folder")
    # These import Numba, which only a run that was cut off needs.
    from smembench.explain.prediction import predict, trace_together
    from smembench.run.config import from_stored
    from smembench.run.stop_rule import rules_of
    from smembench.store.assemble import assemble

    contents = journal.read(path)
    infos = {device.name: device for device in contents.description.devices}
    rules = rules_of(from_stored(contents.description.config.data))
    ci_widths = {kind: rule.ci_width for kind, rule in rules.items()}
    try:
        cases = list(dict.fromkeys(trial.case for trial in contents.trials))
        trace_together(cases, lambda case, number, of: None)
        measurements = assemble(cases, contents.trials, infos, ci_widths, predict)
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: holds a trial that cannot be read here ({type(error).__name__}: {error})") from None
    return Run.of(contents.description, measurements, folder, complete=False)
