"""The ladders of smembench/kernels/README.md, from the kernels' files and stored runs."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path

import smembench.kernels
from smembench.kernels.registry import ladder_of
from smembench.model.case import BY_ROWS
from smembench.store.load import load
from smembench.store.run import Run
from smembench.studies.ladder.climb import climb, steps
from smembench.views.ladder import gain

ROOT = Path(__file__).parents[1]


def files() -> dict[tuple[str, str], Path]:
    """By problem and name, the file of each kernel for CUDA in Numba, relative to the page."""
    result: dict[tuple[str, str], Path] = {}
    for info in pkgutil.walk_packages(smembench.kernels.__path__, "smembench.kernels."):
        module = import_module(info.name)
        for kernel in (getattr(module, "KERNEL", None), *getattr(module, "KERNELS", ())):
            if kernel and "cuda" in info.name.split("."):
                path = Path(*info.name.split(".")).with_suffix(".py")
                result[kernel.problem, kernel.name] = path.relative_to("smembench/kernels")
    return result


def table(problem: str, run: str, dtype: str, size: str) -> str:
    """A line per step that takes the element type: its file, what it changes, and its gain in the run."""
    stored = load(ROOT / "results/reference" / run)
    here = (problem, dtype, size, BY_ROWS)
    rows = [row for row in stored.rows if (row.problem, row.dtype, row.case.size, row.b_layout) == here]
    gains = {rung.kernel.name: gain(rung) for rung in climb(Run(rows, samples=stored.samples))}
    of = files()
    lines = [
        f"| [{kernel.name}]({of[problem, kernel.name]}) | {kernel.ladder} | {gains[kernel.name]} |"
        for kernel in steps(problem, "cuda")
        if kernel.name in gains
    ]
    return "\n".join(["| step | what it changes | gain |", "| :--- | :--- | ---: |", *lines]) + "\n"


def unnamed(page: str) -> set[str]:
    """The steps of all ladders that the page does not name."""
    problems = {problem for problem, _ in files()}
    climbed = {kernel.name for problem in problems for kernel in steps(problem, "cuda") if ladder_of(problem)}
    return {name for name in climbed if name not in page}
