"""A config with some cases of another alone, and a config as TOML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import DEFAULT_COMPILER, Case
from smembench.run.config import Config, from_stored
from smembench.run.launch_cases import sweep_of
from smembench.toolchains.registry import names


def narrowed(config: Config, cases: Iterable[Case], **keys: object) -> Config:
    """The config of these cases alone, sampled as in another, with ``keys`` in place of those of the run."""
    data = {**config.model_dump(mode="json"), **keys}
    return from_stored({**data, "sweep": [as_sweep(case) for case in cases]})


def as_sweep(case: Case) -> dict[str, object]:
    """The one-case sweep of a config that measures this case."""
    if case.launch is not None:
        return sweep_of(case)
    sweep: dict[str, object] = {"problem": case.problem, "kernel": case.kernel, "dtype": case.dtype}
    sweep |= PROBLEMS[case.problem].sizes_of(case) | dict(case.parameters)
    if case.compiler != DEFAULT_COMPILER and case.compiler in names():
        sweep["compiler"] = case.compiler
    if case.block is not None:
        sweep["block"] = str(case.block)
    if case.pad:
        sweep["pad_width"] = case.pad
    if case.stride is not None:
        sweep["stride"] = case.stride
    if case.inputs != PROBLEMS[case.problem].usual_inputs(case.dtype):
        sweep["inputs"] = case.inputs
    if case.b_layout != PROBLEMS[case.problem].usual_b_layout(case.dtype):
        sweep["b_layout"] = case.b_layout
    return {**sweep, "device": case.device, "cache": case.cache}


def to_toml(
    sweeps: Iterable[Mapping[str, object]], remarks: Sequence[str] = (), keys: Mapping[str, object] | None = None
) -> str:
    """A config that ``smembench run`` reads, with the keys of the run; remarks become comments."""
    lines = [*(f"# {remark}" for remark in remarks), *_lines(keys or {})]
    for sweep in sweeps:
        lines += ["", "[[sweep]]", *_lines(sweep)]
    return "\n".join([*lines, ""])


def _lines(keys: Mapping[str, object]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in keys.items()]


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + "}"
    return json.dumps(value)
