"""smembench: a benchmark of GPU shared memory in plain Python.

For notebooks and scripts. What these functions return displays itself: a table in a notebook, text in a terminal.

    >>> import smembench
    >>> result = smembench.measure(problem="transpose", n=64, kernel="memcpy", device="cpu", max_seconds=0.05)
    >>> result.frame[["kernel", "n", "verified"]]
       kernel   n  verified
    0  memcpy  64      True
    >>> list(result.samples.columns)
    ['case_id', 'round', 'sample', 'elapsed_ms']
    >>> result.chart()
    <Chart rate-transpose-64x64-float32-warm: matrix transpose 64×64 float32 · warm cache: GB/s>
    >>> result.compare(result).regressions
    []
    >>> padded = smembench.explain_kernel("transposeSmemPad", n=256, pad_width=1, capability="9.0")
    >>> padded.degree("load")
    1.0
    >>> padded  # doctest: +ELLIPSIS
    transposeSmemPad in transpose_smem.py · block 32x32, pad 1 ...

``measure("quick", output="results")`` measures one of the package's configs and stores the run; ``resume`` continues a
run that was cut off, ``read`` loads a stored one. ``tune("transpose", device="cuda").best`` is the fastest case.
Times are in ms per launch; ``smembench.store.schema.Row`` describes every column of ``result.frame`` and its unit.

Every error is a ``SmembenchError``. Ctrl-C raises a KeyboardInterrupt: that of ``measure`` and ``resume`` has the
finished cases in ``run``, which ``result(run)`` displays; that of ``tune`` has the best so far in ``so_far``.
"""

from __future__ import annotations

from smembench.model.errors import DeviceUnavailable, SmembenchError, UsageError
from smembench.model.version import VERSION as __version__
from smembench.stats.threshold import THRESHOLD

# Nothing of Python's library here: ``python -m smembench`` would import it from the working directory.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from smembench.report.notebook import Best, Compared, Explained, ExplainedFunction, ExplainedLayout, Result, Side
    from smembench.store.run import Run
    from smembench.studies.run import Watch

__all__ = [
    "DeviceUnavailable",
    "SmembenchError",
    "UsageError",
    "__version__",
    "compare",
    "conflicts",
    "explain_function",
    "explain_kernel",
    "layout",
    "measure",
    "read",
    "result",
    "resume",
    "time",
    "tune",
]


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)


def measure(
    config: str | Path | Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    *,
    output: str | Path | None = None,
    anonymous: bool = False,
    progress: bool = False,
    **keys: Any,
) -> Result:
    """Measure a config, or one sweep given by its keys.

    Args:
        config: a TOML file, or its content: ``{"sweep": [{"problem": "transpose", "n": 1024}]}``.
        overrides: ``key=value`` as for ``smembench run --set``.
        output: the folder to make the run's folder in; nothing is stored without it.
        anonymous: leave everything that identifies the machine out of run.json.
        progress: print notes and progress to stderr: a bar on a terminal, elsewhere a line per round.
        keys: instead of a config, keys of one sweep and of the run: ``problem="matmul", n=[256, 512], rounds=5``.

    Raises:
        UsageError: for an invalid config.
        DeviceUnavailable: for a device that is not there.
        RunInterrupted: on Ctrl-C; a KeyboardInterrupt whose ``run`` has the finished cases.
    """
    from smembench.run.config import from_python
    from smembench.studies.run import Storage, run, whole

    chosen = from_python(config, overrides, keys)
    storage = Storage(None if output is None else _path(output), anonymous=anonymous)
    return result(whole(lambda: run(chosen, storage, watch=_watch(progress))))


def resume(folder: str | Path, *, force: bool = False, progress: bool = False) -> Result:
    """Continue a run that was interrupted or killed.

    Args:
        folder: the run's folder.
        force: continue even if device, driver, versions, settings or code differ; run.json records the differences.
        progress: as for ``measure``.

    Raises:
        UsageError: for a folder that cannot be resumed, or an environment that differs.
        DeviceUnavailable: for a device that is not there.
        RunInterrupted: as from ``measure``.
    """
    from contextlib import closing

    from smembench.run.config import from_stored
    from smembench.store.run_folder import RunFolder
    from smembench.studies.run import Storage, run, whole

    with closing(RunFolder.resume(_path(folder))) as begun:
        config = from_stored(begun.description.config.data)
        return result(whole(lambda: run(config, Storage(resume=begun, force=force), watch=_watch(progress))))


def read(path: str | Path) -> Result:
    """Load a stored run: its folder, even if it was cut off, or a cases.csv; ``last`` is the newest in ``results``.

    A damaged journal is read up to the damage, with a warning about what was dropped.

    Raises:
        UsageError: for a file that cannot be read.
    """
    from smembench.explain.prediction import predictor
    from smembench.store.load import load

    return result(load(_path(path), predictor))


def compare(
    base: Side,
    new: Side,
    *,
    threshold: float = THRESHOLD,
    fdr: float = 0.05,
    confidence: float = 0.95,
    across: Collection[str] = (),
) -> Compared:
    """Compare runs case by case: ``cases`` have ratios, new time over base time, and ``regressions`` are slower.

    Args:
        base: a result, a run's folder or a cases.csv; several in a list are pooled.
        new: the same, measured later.
        threshold: the smallest effect that counts, as a fraction.
        fdr: the false discovery rate over the cases.
        confidence: of the ratios' intervals.
        across: ``["device"]`` compares runs on several devices, or on one that they do not name.

    Raises:
        UsageError: for runs that cannot be read, and for an invalid threshold, rate or confidence.
    """
    from smembench.report.notebook import compared
    from smembench.studies.compare import Rules

    return compared(base, new, Rules(threshold, fdr, confidence), across)


def explain_kernel(  # noqa: PLR0913 - keywords of the public interface
    kernel: str,
    *,
    block: str | int | Sequence[int] | None = None,
    dtype: str | None = None,
    pad_width: int = 1,
    n: int | None = None,
    stride: int | None = None,
    capability: str | None = None,
) -> Explained:
    """Bank conflicts, sectors and occupancy of one of the package's CUDA kernels, from a trace; needs no GPU.

    ``degree("load")`` is the n of the n-way conflicts of all shared loads, ``sectors("load")`` the 32-byte sectors per
    request of all global loads; likewise ``"store"``.

    Args:
        kernel: its name, as ``smembench list kernels`` prints it.
        block, dtype: such as ``"32x8"`` or ``(32, 8)`` threads and ``"float32"``; the kernel's defaults if None.
        pad_width: extra columns of a padded tile.
        n, stride: side of the square matrices or number of elements, and elements between rows or lanes.
        capability: to compile for, such as ``"9.0"`` or ``"sm_90"``; by default that of the GPU here, else 9.0.

    Raises:
        UsageError: for an invalid name, block, dtype, pad or stride.
    """
    from smembench.launches.dimensions import as_text, sides
    from smembench.report.notebook import Explained, shown
    from smembench.studies.explain import Axes, cases, explained, single, target

    on = target(capability=capability)
    threads = block if block is None or isinstance(block, str) else as_text(sides(block))
    case = single(cases(kernel, Axes(threads, dtype, str(pad_width)), n=n, stride=stride, on=on))
    return shown(Explained, explained(case, on.capability, on.device.sm_count if on.device else None))


def explain_function(  # noqa: PLR0913 - keywords of the public interface
    function: Any,
    *,
    grid: int | Sequence[int],
    block: int | Sequence[int] | None = None,
    args: Sequence[Any],
    shared_bytes: int = 0,
    cluster: int | Sequence[int] | None = None,
    capability: str | None = None,
    options: Sequence[str] = (),
    **named: Any,
) -> ExplainedFunction:
    """The same for any kernel, from a trace; needs no GPU.

    Args:
        function: a function for Numba or Triton; an object that holds CUDA C++, such as CuPy's RawKernel; or a kernel
            of a file, ``"kernel.cu:name"``, ``"kernel.ptx:name"`` or ``"kernel.py:name"``.
        grid, block: blocks, and threads of a block, as an int or up to three; Triton decides on the block.
        args: numbers, arrays, or text as on the command line, ``"float32[64,100] strides 128x1"``. The trace reads the
            data of NumPy's arrays; other arrays have a shape, a type, strides and an alignment only.
        shared_bytes: dynamic shared memory of the launch.
        cluster: blocks of a cluster of CUDA C++ or PTX, as an int or up to three; by default the kernel's own, if any.
        capability: to compile for; 9.0 by default. Functions for Numba need NVIDIA's compiler libraries.
        options: the compiler's for a .cu file, such as ``["-DPAD=1"]``.
        named: what a launch of Triton names: ``BLOCK=128, num_warps=8``.

    Raises:
        UsageError: for a launch that no GPU takes, and a kernel that cannot be traced.
    """
    from smembench.explain.any_kernel import explain_any
    from smembench.launches.arguments import in_order_and_named, named_value
    from smembench.launches.dimensions import sides
    from smembench.launches.launch import Launch
    from smembench.report.notebook import ExplainedFunction, shown
    from smembench.studies.explain import target

    in_order, of_text = in_order_and_named(args)
    names = {**of_text, **{name: named_value(value) for name, value in named.items()}}
    threads, blocks = (None if shape is None else sides(shape) for shape in (block, cluster))
    launch = Launch(sides(grid), threads, in_order, names, shared_bytes, blocks)
    capability = target(capability=capability).capability
    return shown(ExplainedFunction, explain_any(function, launch, capability=capability, options=options))


def conflicts(function: Any, *, kind: str | None = None, partial: bool = False, **launch: Any) -> float:
    """The worst n of the n-way bank conflicts of any kernel, 1 if it has none; for assertions in tests.

    Args:
        function: the kernel, as for ``explain_function``.
        kind: ``load`` or ``store`` for these alone.
        partial: leave out what depends on data that was not given instead of raising.
        launch: ``grid``, ``block``, ``args`` and the others of ``explain_function``.

    Raises:
        UsageError: as ``explain_function``, for a kernel with mistakes, and unless ``partial`` for unknown data.
    """
    return explain_function(function, **launch).conflicts(kind, partial=partial)


def layout(
    load: Callable[[int], int | None] | Sequence[int | None] | None = None,
    store: Callable[[int], int | None] | Sequence[int | None] | None = None,
    *,
    itemsize: int = 4,
    vector: int = 1,
    row: int | None = None,
) -> ExplainedLayout:
    """Wavefronts and bank conflicts of a warp's accesses to shared memory, for layouts without a kernel.

    ``layout(lambda lane: lane % 16 * 64 + lane // 16 * 8, itemsize=2, vector=8).wavefronts`` is 32, where 4 would do;
    it shows the banks, and what removes the conflicts.

    Args:
        load, store: the element offset of each lane, None for an inactive lane; of a load, a store or both.
        itemsize: bytes per element.
        vector: elements per lane, from its offset on.
        row: elements per row of the tile, for what removes the conflicts; by default rows are tried.

    Raises:
        UsageError: for bytes per lane that no instruction has, and offsets that are negative or not aligned.
    """
    from smembench.explain.lanes import lanes
    from smembench.report.notebook import ExplainedLayout, shown

    return shown(ExplainedLayout, lanes(load, store, itemsize=itemsize, vector=vector, row=row))


def tune(
    problem: str,
    *,
    n: int | None = None,
    dtype: str = "float32",
    kernel: str | None = None,
    device: str = "auto",
    progress: bool = False,
    **keys: Any,
) -> Best:
    """Find the fastest kernel, block and pad for a problem on a device.

    Args:
        problem: such as transpose or matmul.
        n, dtype: side of the square matrices, by default the problem's, and element type.
        kernel: names separated by commas; all for None.
        device: auto, cuda, cuda:1, cpu.
        progress: as for ``measure``.
        keys: ``m`` and ``k``, other sides than n, and keys of the run, such as ``rounds=5``.

    Raises:
        UsageError: for an invalid argument, and if no candidate could be measured.
        DeviceUnavailable: for a device that is not there.
        TuneInterrupted: on Ctrl-C; a KeyboardInterrupt whose ``so_far`` has the best so far.
    """
    from smembench.devices.select import check_usable
    from smembench.report.notebook import Best, shown
    from smembench.studies.tune import candidates, tuned

    watch = _watch(progress)
    sizes = {"n": n, "m": keys.pop("m", None), "k": keys.pop("k", None)}
    check_usable(device)
    search = candidates(problem, sizes, dtype=dtype, kernel=kernel, device=device, watch=watch)
    return shown(Best, tuned(search, keys, watch))


def time(kernel: Any, *args: Any, output: str | Path | None = None, progress: bool = False, **keys: Any) -> Result:
    """Time a kernel of your own, as ``smembench time`` does.

    A kernel that Python holds is timed in this process, on copies of the arrays, which stay as they are.

    Args:
        kernel: a function of Numba or Triton, CuPy's RawKernel, any function that enqueues work on the GPU, or a kernel
            of a file, ``"kernel.cu:name"``.
        args: its arguments: arrays, whose data is used, numbers, or text as on the command line: ``"float32[64,100]"``.
        output: the folder to make the run's folder in; nothing is stored without it.
        progress: as for ``measure``.
        keys: ``grid`` and ``block`` as an int or up to three, or a function of the constants as Triton's grids are;
            ``check``, a function of the same arguments as NumPy's arrays or a sequence of the expected outputs;
            ``out``, ``inout``, ``scratch`` and ``reset={3: 0}`` by number or name; other options of ``smembench time``;
            keys of the run, such as ``rounds=5``; and arguments by name, such as ``BLOCK=128``.

    Raises:
        UsageError: for a launch that no GPU takes.
        DeviceUnavailable: without a GPU.
        RunInterrupted: as from ``measure``.
    """
    from smembench.studies.run import Storage
    from smembench.studies.time_call import time_call

    storage = Storage(None if output is None else _path(output))
    return result(time_call(kernel, args, keys, storage, _watch(progress)))


def result(run: Run) -> Result:
    """Wrap a run, such as the ``run`` of an interrupted one, as ``measure`` and ``read`` do."""
    from smembench.report.notebook import Result

    return Result(run)


def _path(path: str | Path) -> Path:
    from pathlib import Path

    return Path(path)


def _watch(progress: bool) -> Watch:
    from smembench.studies.run import SILENT
    from smembench.views.run import watch

    return watch() if progress else SILENT
