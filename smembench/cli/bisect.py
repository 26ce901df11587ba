"""``smembench bisect``: which commit made a case slower?"""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import typer

from smembench.cli import complete
from smembench.cli.options import CASES, PERCENT, Outputs
from smembench.cli.output import opened
from smembench.cli.signature import argument, option, takes
from smembench.model.errors import SmembenchError, UsageError


@takes(outputs=Outputs)
def bisect(
    config: Path | None = argument("CONFIG", "What to measure, as for run.", autocompletion=complete.configs),
    *,
    good: str | None = option("REV", "A commit that is fast."),
    bad: str = option("REV", "A later one that is slow.", default="HEAD"),
    versions: str | None = option(
        "PACKAGE=A,B,…",
        "In place of commits: versions of a package, the good one first, each installed by pip into an environment of "
        "its own.",
    ),
    case: str | None = CASES,
    build: str | None = option("COMMAND", "What to run in each commit's checkout before it is measured."),
    threshold: float | None = option(
        "PERCENT", "Smallest slowdown that counts. (default: the config's)", parser=PERCENT
    ),
    output: Path | None = option("DIR", "Where to create its folder. (default: results)", "-o"),
    resume: Path | None = option("DIR", "Go on with a search that was cut off: its folder."),
    outputs: Outputs,
) -> None:
    """Find the commit that made cases slower.

    The repository is that of CONFIG if it measures kernels of your own, else smembench's. Each commit to be measured is
    checked out into a worktree in a temporary folder; your checkout, index, branches, stash and hooks stay as they are.
    The good commit, the bad one and one between, along first parents, are measured in turn, in processes of their own
    and at least three rounds, and judged as by `compare`: what is ambiguous is repeated, and a step in both halves is
    two commits. A commit that does not build, or lacks the case, is skipped. If the ends are no longer what they were
    when the search began, no commit is named. Of CONFIG the cases are taken as they are now.

    Exit codes: 0 found, 5 no difference, a machine that changed, or noise that leaves it open.

    Examples:

      smembench bisect --good v1.2 --bad main mine.toml --case "*tiled*"

      smembench bisect --good HEAD~40 mine.toml --build make

      smembench bisect nightly --versions numba=0.60,0.61,0.62 --case "*Pad*"

      smembench bisect --resume results/20260101T020000Z-mine-bisect
    """
    from smembench.cli.measure import Interrupted
    from smembench.run.config import from_toml
    from smembench.run.shipped import shipped
    from smembench.store.files import locked
    from smembench.studies.bisect.run import bisect as search
    from smembench.studies.bisect.state import begin
    from smembench.views.bisect import exit_code, result
    from smembench.views.console import notes, say

    target = opened(outputs)
    if resume is not None:
        if config is not None or good is not None or versions is not None or output is not None:
            raise UsageError(
                f"--resume {resume}: goes on with what it has; leave CONFIG, --good, --versions and --output out"
            )
        folder = resume
    elif config is None or (good is None) == (versions is None):
        raise UsageError("give CONFIG and --good REV, or --versions, or --resume DIR")
    else:
        path = shipped().get(str(config), config).resolve()
        flags = {} if threshold is None else {"threshold": threshold}
        along = versions or (good or "", bad)
        folder = begin(from_toml(path, (), flags), path, along, case, build or "", output or Path("results"))
    try:
        with locked(folder):
            bisected = search(folder, lambda line: say(notes, line))
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted{_continue(folder)}") from None
    except UsageError:
        raise
    except SmembenchError as error:
        raise type(error)(f"{error}{_continue(folder)}") from None
    target.show(result(bisected))
    say(notes, f"wrote {folder}")
    if code := exit_code(bisected):
        raise typer.Exit(code)


def _continue(folder: Path) -> str:
    return f"; continue with: smembench bisect --resume {quote(str(folder))}"
