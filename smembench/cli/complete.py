"""Names that a shell completes."""

from __future__ import annotations

from collections.abc import Sequence

import typer


def kernels(context: typer.Context, incomplete: str) -> list[str]:
    """Names of the command's kernels; of a list the last name is completed."""
    from smembench.kernels import registry
    from smembench.kernels.problems import COMMANDS, PROBLEMS

    if context.info_name == "explain":
        from smembench.studies.explain import explainable

        return _completed(list(explainable()), incomplete)
    of_command = COMMANDS.get(str(context.info_name), PROBLEMS.values())
    return _completed([name for problem in of_command for name in registry.names(problem.name)], incomplete)


def _completed(names: Sequence[str], incomplete: str) -> list[str]:
    """The names that begin so; of a list the last is completed."""
    chosen, comma, start = incomplete.rpartition(",")
    return [f"{chosen}{comma}{name}" for name in names if name.lower().startswith(start.lower())]


def problems(context: typer.Context, incomplete: str) -> list[str]:
    """Names of the problems that the command takes."""
    from smembench.studies import compilers
    from smembench.studies.ladder import climb

    # What there is to choose from are the steps of a ladder.
    return _completed(compilers.problems() if context.info_name == "compilers" else climb.problems(), incomplete)


def configs(incomplete: str) -> list[str]:
    """Names of the package's configs."""
    from smembench.run.shipped import shipped

    return [name for name in shipped() if name.startswith(incomplete)]
