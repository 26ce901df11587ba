"""Timing of a kernel that Python holds, or of one in a file, from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from smembench.kernels.driver import own_context
from smembench.launches.live import Tokens, tokens
from smembench.launches.raw_kernel import source_of
from smembench.model.errors import UsageError
from smembench.run.config import Config, from_data
from smembench.run.in_process import InProcess
from smembench.run.worker import Worker
from smembench.store.run import Run
from smembench.store.run_folder import RunFolder, new_run_id
from smembench.studies.run import SILENT, UNSTORED, Storage, Watch, run, whole


def time_call(
    kernel: Any,
    args: Sequence[Any],
    keys: Mapping[str, Any],
    storage: Storage = UNSTORED,
    watch: Watch = SILENT,
    *,
    wait: bool = False,
) -> Run:
    """Time one kernel with these arguments; ``keys`` are those of its sweep and of the run, others named arguments.

    With ``wait`` it waits for other processes that hold the GPU's lock.

    A kernel in a file is timed in a worker process. One that Python holds is timed here, on copies of the arrays.

    Raises:
        UsageError: for an invalid key or launch.
        DeviceUnavailable: without a GPU.
        RunInterrupted: on Ctrl-C.
    """
    with tokens() as made:
        config = _config(kernel, args, keys, made)
        live = not isinstance(kernel, str) or any("$" in text for text in config["sweep"][0]["arg"])
        hire: Callable[[Sequence[str]], Worker] = InProcess if live else Worker
        with own_context():
            return whole(lambda: run(from_data(config), storage, wait=wait, watch=watch, hire=hire))


def _config(kernel: Any, args: Sequence[Any], keys: Mapping[str, Any], made: Tokens) -> dict[str, Any]:
    from smembench.run.launch_sweep import LaunchSweep

    of_run = {key: value for key, value in keys.items() if key in Config.model_fields and key != "name"}
    own = LaunchSweep.model_fields.keys() - {"problem", "kernel", "arg"}
    sweep = {key: value for key, value in keys.items() if key in own and value is not None}
    named = {key: value for key, value in keys.items() if key not in of_run and key not in own}
    if isinstance(reset := sweep.get("reset"), Mapping):
        sweep["reset"] = [f"{place}={value}" for place, value in reset.items()]
    for key in ("grid", "block", "cluster"):
        value = sweep.get(key, "")
        value = value(named) if callable(value) else value  # as Triton calls a grid, with the constants
        if isinstance(value, Sequence) and not isinstance(value, str):
            sweep[key] = "x".join(map(str, value))
    if not isinstance(check := sweep.get("check", ""), str):
        if not (callable(check) or isinstance(check, Sequence) or hasattr(check, "shape")):
            raise UsageError(f"check={check!r}: give a function, or the expected outputs")
        sweep["check"] = made.of(check, "reference")
    own_name = _name_of(kernel)
    name = sweep.pop("name", "") or own_name
    target = kernel if isinstance(kernel, str) else made.of(kernel, name)
    texts = [value if isinstance(value, str | int | float) else made.of(value, _described(value)) for value in args]
    if strange := [key for key, value in named.items() if callable(value) or isinstance(value, Mapping)]:
        raise UsageError(f"{strange[0]}=…: is no option of smembench.time, and no number or text that a kernel takes")
    if arrays := [key for key, value in named.items() if hasattr(value, "shape") and value.shape]:
        raise UsageError(f"{arrays[0]}=…: is an array; give arrays in their order, without names")
    texts += [f"{key}={value}" for key, value in named.items()]
    return {
        **of_run,
        "name": "time",
        "sweep": [{"problem": "time", "kernel": target, "name": name, **sweep, "arg": [*map(str, texts)]}],
    }


def _name_of(kernel: Any) -> str:
    if isinstance(kernel, str):
        return ""
    if not callable(kernel) and not source_of(kernel):
        raise UsageError(f"{kernel!r}: is no kernel; give a function, a kernel, or text such as path.cu:name")
    name = getattr(kernel, "__name__", None) or getattr(kernel, "name", None) or type(kernel).__name__
    return "".join(letter if letter.isalnum() or letter in "_.-" else "_" for letter in str(name))


def _described(value: Any) -> str:
    """An array as the command line writes it, for whoever reads the stored config."""
    shape, dtype = getattr(value, "shape", ()), getattr(value, "dtype", type(value).__name__)
    return f"{str(dtype).rpartition('.')[2]}{[*map(int, shape)]}"


def store(runs: Sequence[Run], root: Path) -> Path:
    """Store the cases of several runs of one process as one run, in a folder below ``root``; returns the folder.

    Raises:
        UsageError: if it cannot be written.
    """
    first = runs[0].description
    sweeps = [sweep for run in runs for sweep in run.description.config.sweep]
    description = first.model_copy(
        update={
            "run_id": new_run_id("pytest"),
            "config": first.config.model_copy(update={"name": "pytest", "sweep": sweeps}),
            "kernels": {name: digest for run in runs for name, digest in run.description.kernels.items()},
        }
    )
    folder = RunFolder.create(root, description)
    rows = [replace(row, run_id=folder.description.run_id) for run in runs for row in run.rows]
    samples = {case_id: values for run in runs for case_id, values in run.samples.items()}
    folder.write(Run(rows, folder.description, samples))
    return folder.path
