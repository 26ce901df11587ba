"""The runs that the two sides of a comparison name."""

from __future__ import annotations

from pathlib import Path

from smembench.model.errors import UsageError
from smembench.run.axes import split
from smembench.store.csv_files import CASES
from smembench.store.files import resolved, there
from smembench.store.load import load
from smembench.store.run import Run
from smembench.studies.compare.comparability import same_run


def load_side(text: str) -> list[Run]:
    """The runs of one side of a comparison: of one path, or of several separated by commas.

    Raises:
        UsageError: for a path that cannot be read, and a run that is given twice, also as a copy.
    """
    runs: dict[Path, Run] = {}
    for item in [text] if "," not in text or _there(text) else split(text):
        path = Path(item or text)
        if resolved(path) in runs:
            raise UsageError(f"{path}: is given twice on one side; give it once")
        run = load(path, shown=False)
        if twin := next((other for other in runs.values() if same_run(run, other)), None):
            raise UsageError(f"{path}: is the same run as {twin.path}, given on one side; give it once")
        runs[resolved(path)] = run
    return list(runs.values())


def _there(text: str) -> bool:
    """True if a text is one path: several together can be too long for a path."""
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
    return [load(path, shown=False) for path in inside] if inside and not there(folder / CASES) else load_side(text)
