"""smembench: a benchmark of GPU shared memory in plain Python.

For notebooks and scripts; tables are pandas DataFrames with the columns of cases.csv, one row per case::

    import smembench
    frame = smembench.measure(problem="transpose", n=256)              # one sweep
    frame = smembench.measure("quick", output="results")               # a config, stored in results/<run>
    frame = smembench.resume("results/<run>")                          # continue an interrupted run
    frame = smembench.read("results/<run>")
    smembench.compare("results/<before>", "results/<after>").counts
    smembench.explain_kernel("transposeSmem", n=1024).degree("load")
    smembench.tune("transpose", device="cuda").best

Errors are ``SmembenchError``s. Ctrl-C raises a KeyboardInterrupt; in ``measure`` and ``resume`` its ``run`` has
the finished cases, and ``frame(run)`` is their DataFrame; in ``tune`` its ``so_far`` has the best so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smembench.model.errors import DeviceUnavailable, SmembenchError, UsageError
from smembench.model.version import VERSION as __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import pandas as pd

    from smembench.explain.analysis import Explanation
    from smembench.store.run import Run
    from smembench.studies.compare import Comparison
    from smembench.studies.run import Outcome, Watch
    from smembench.studies.tune import Tuned

__all__ = [
    "DeviceUnavailable",
    "SmembenchError",
    "UsageError",
    "__version__",
    "compare",
    "explain_kernel",
    "frame",
    "measure",
    "read",
    "resume",
    "tune",
]

_Paths = str | Path | list[str | Path]


def measure(
    config: str | Path | Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    *,
    output: str | Path | None = None,
    anonymous: bool = False,
    progress: bool = False,
    **keys: Any,
) -> pd.DataFrame:
    """Measure a config, or one sweep given by its keys.

    Args:
        config: a TOML file, or its content: ``{"sweep": [{"problem": "transpose", "n": 1024}]}``.
        overrides: ``key=value`` as for ``smembench run --set``.
        output: the folder to make the run's folder in; nothing is stored without it.
        anonymous: leave everything that identifies the machine out of run.json.
        progress: show a progress bar and notes on stderr.
        keys: instead of a config, keys of one sweep and of the run: ``problem="matmul", n=[256, 512], rounds=5``.

    Raises:
        UsageError: for an invalid config.
        DeviceUnavailable: for a device that is not there.
        RunInterrupted: on Ctrl-C; a KeyboardInterrupt whose ``run`` has the finished cases.
    """
    from smembench.run.config import Config, from_data, from_toml
    from smembench.studies.run import run

    if config is not None and keys:
        raise UsageError(f"{next(iter(keys))}: give a config or the keys of a sweep; overrides change a config")
    if config is None:
        of_run = {key: keys.pop(key) for key in list(keys) if key in Config.model_fields}
        config = {**of_run, "sweep": [keys]}
    chosen = from_data(config, overrides) if isinstance(config, Mapping) else from_toml(Path(config), overrides)
    folder = None if output is None else Path(output)
    return _finished(lambda: run(chosen, output=folder, anonymous=anonymous, watch=_watch(progress)))


def resume(folder: str | Path, *, force: bool = False, progress: bool = False) -> pd.DataFrame:
    """Continue a run that was interrupted or killed.

    Args:
        folder: the run's folder.
        force: continue even if device, driver, versions or code differ; run.json records the differences.
        progress: show a progress bar and notes on stderr.

    Raises:
        UsageError: for a folder that cannot be resumed, or an environment that differs.
        DeviceUnavailable: for a device that is not there.
        RunInterrupted: as from ``measure``.
    """
    from contextlib import closing

    from smembench.run.config import from_stored
    from smembench.store.run_folder import RunFolder
    from smembench.studies.run import run

    with closing(RunFolder.resume(Path(folder))) as begun:
        config = from_stored(begun.description.config.data)
        return _finished(lambda: run(config, resume=begun, force=force, watch=_watch(progress)))


def read(path: str | Path) -> pd.DataFrame:
    """The cases of a stored run, from its folder, even if it was cut off, or from a cases.csv.

    A damaged journal is read up to the damage; a warning tells what was dropped.

    Raises:
        UsageError: for a file that cannot be read.
    """
    from smembench.studies.load import load

    return frame(load(Path(path)))


def compare(
    base: _Paths,
    new: _Paths,
    *,
    threshold: float = 0.005,
    fdr: float = 0.05,
    confidence: float = 0.95,
    across: Collection[str] = (),
) -> Comparison:
    """Compare stored runs case by case; the runs of several paths are pooled.

    Args:
        base: runs' folders or cases.csv files.
        new: the same, measured later.
        threshold: the smallest effect that counts, as a fraction.
        fdr: the false discovery rate over the cases.
        confidence: of the ratios' intervals.
        across: what may differ: ``device``, ``driver``, ``clocks``.

    Raises:
        UsageError: for runs that cannot be read, and for an invalid threshold, rate or confidence.
    """
    from smembench.studies.compare import compare_runs
    from smembench.studies.compare.beside import beside
    from smembench.studies.load import load

    sides = [[load(Path(path)) for path in (paths if isinstance(paths, list) else [paths])] for paths in (base, new)]
    others = beside(*sides)
    return compare_runs(*sides, threshold=threshold, fdr=fdr, confidence=confidence, across=across, beside=others)


def explain_kernel(
    kernel: str,
    *,
    block: str | None = None,
    dtype: str | None = None,
    pad_width: int = 1,
    n: int | None = None,
    stride: int | None = None,
    capability: str | None = None,
) -> Explanation:
    """Bank conflicts, sectors and occupancy of a CUDA kernel, from a trace of it; needs no GPU.

    Raises:
        UsageError: for an invalid name, block, dtype, pad or stride.
    """
    from smembench.studies.explain import cases, explained, target

    device, capability = target(capability=capability)
    (case,) = cases(kernel, blocks=block, dtypes=dtype, pads=str(pad_width), n=n, stride=stride, device=device)
    return explained(case, capability)


def tune(
    problem: str,
    *,
    n: int | None = None,
    dtype: str = "float32",
    kernel: str | None = None,
    device: str = "auto",
    progress: bool = False,
    **sampling: Any,
) -> Tuned:
    """Find the fastest kernel, block and pad for a problem on a device.

    Args:
        problem: transpose or matmul.
        n: side of the square matrices; the problem's default for None.
        dtype: element type.
        kernel: names separated by commas; all for None.
        device: auto, cuda, cuda:1, cpu.
        progress: show a progress bar and notes on stderr.
        sampling: keys of the run, such as ``rounds=5``.

    Raises:
        UsageError: for an invalid argument, and if no candidate could be measured.
        DeviceUnavailable: for a device that is not there.
        TuneInterrupted: on Ctrl-C; a KeyboardInterrupt whose ``so_far`` has the best so far.
    """
    from smembench.studies.tune import candidates, tuned

    watch = _watch(progress)
    return tuned(candidates(problem, n=n, dtype=dtype, kernel=kernel, device=device, watch=watch), sampling, watch)


def frame(run: Run) -> pd.DataFrame:
    """The cases of a run as a DataFrame with the columns of cases.csv."""
    import pandas as pd

    from smembench.store.schema import COLUMNS

    return pd.DataFrame([[getattr(row, column) for column in COLUMNS] for row in run.rows], columns=list(COLUMNS))


def _finished(measured: Callable[[], Outcome]) -> pd.DataFrame:
    from smembench.model.interrupts import held
    from smembench.studies.run import RunInterrupted

    with held() as hold:
        outcome = measured()
        if hold.take() and outcome.error is None:
            raise RunInterrupted("interrupted at the end of the run", outcome.run)
    if outcome.error is not None:
        raise outcome.error
    return frame(outcome.run)


def _watch(progress: bool) -> Watch:
    from smembench.studies.run import SILENT, Watch

    if not progress:
        return SILENT
    from smembench.views.console import say, stderr
    from smembench.views.progress import progress as bar

    return Watch(note=lambda line: say(stderr, line), progress=bar)
