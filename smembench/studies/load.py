"""A stored run, whole: from its folder, from a cases.csv, or from the journal of a run that was killed."""

from __future__ import annotations

from pathlib import Path

from smembench.model.errors import UsageError
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
    # Files beside a CSV that --csv wrote somewhere are another run's.
    own = path.is_dir() or path.name == CASES
    description = read_description(folder) if own else Description()
    samples = read_samples(folder / SAMPLES) if own and (folder / SAMPLES).exists() else {}
    return Run(rows, description, samples, path, complete=description.complete is not False)


def _cut_off(folder: Path) -> Run:
    """A run without its cases.csv, from its journal: every case it holds, in the order they were begun.

    Raises:
        UsageError: for a folder without a journal, for a journal that cannot be read, and for one of cases that this
            smembench does not know.
    """
    path = folder / JOURNAL
    if not path.exists():
        raise UsageError(f"{folder}: holds no {CASES}; give a run's folder")
    # They import Numba, which only a run that was cut off needs.
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
