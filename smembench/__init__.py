"""smembench: a benchmark of GPU shared memory in plain Python.

For notebooks and scripts::

    import smembench
    frame = smembench.measure("configs/quick.toml")      # a pandas DataFrame, one row a case
    frame = smembench.read("results/<run>/cases.csv")    # the same from a stored run
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from smembench.model.version import VERSION as __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

__all__ = ["__version__", "measure", "read"]


def measure(config: str | Path | dict[str, Any], overrides: Sequence[str] = ()) -> pd.DataFrame:
    """Measure a TOML file or a config given as a dict, and return the columns of cases.csv.

    Args:
        config: a path, or the content of a config: ``{"sweep": [{"problem": "transpose", "n": 1024}]}``.
        overrides: ``key=value`` as for ``smembench run --set``; only for a path.

    Raises:
        smembench.model.errors.UsageError: for a config that cannot run.
        smembench.model.errors.DeviceUnavailable: for a device that is not there.
    """
    from smembench.explain.prediction import predict
    from smembench.run.config import from_stored, from_toml
    from smembench.run.session import open_session
    from smembench.store.run_folder import new_run_id, rows_of

    chosen = from_stored(config) if isinstance(config, dict) else from_toml(Path(config), overrides)
    with open_session(chosen) as session:
        trials = list(session.run())
        return _frame(rows_of(new_run_id(chosen.name), session.measurements(trials, predict)))


def read(path: str | Path) -> pd.DataFrame:
    """The cases of a stored run: a folder or a cases.csv.

    Raises:
        smembench.model.errors.UsageError: for a file that cannot be read.
    """
    from smembench.store.csv_files import read_rows
    from smembench.store.run_folder import CASES

    path = Path(path)
    return _frame(read_rows(path / CASES if path.is_dir() else path))


def _frame(rows: Sequence[Any]) -> pd.DataFrame:
    import pandas as pd

    from smembench.store.schema import COLUMNS

    return pd.DataFrame([[getattr(row, column) for column in COLUMNS] for row in rows], columns=list(COLUMNS))
