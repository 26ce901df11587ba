"""The problems: what the folders of this package declare as ``PROBLEM`` in their ``problem.py``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import smembench.kernels
from smembench.model.problem import Problem, Verification


def _declared() -> list[Problem]:
    """Every folder's problem, in the order that they declare."""
    paths = (path for folder in smembench.kernels.__path__ for path in Path(folder).glob("*/problem.py"))
    problems = [import_module(f"smembench.kernels.{path.parent.name}.problem").PROBLEM for path in paths]
    return sorted(problems, key=lambda problem: (problem.order, problem.name))


PROBLEMS: dict[str, Problem] = {problem.name: problem for problem in _declared()}

COMMANDS: dict[str, list[Problem]] = {}
"""The problems that a command measures, by its name; the user's kernels have a command of another kind."""
for _problem in PROBLEMS.values():
    if _problem.axes:
        COMMANDS.setdefault(_problem.texts.command or _problem.name, []).append(_problem)

__all__ = ["COMMANDS", "PROBLEMS", "Problem", "Verification"]
