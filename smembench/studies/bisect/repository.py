"""Candidates of a search: commits of a git repository that is only read, or versions of a package.

Each is made ready in a folder of its own, and removed again.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from smembench.model.child import captured, module_command
from smembench.model.errors import UsageError
from smembench.run.environment import without_git

_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")
"""Settings with which no command runs a hook of the user's or tidies up."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository by its top folder. No command here writes its checkout, index, branches or stash."""

    top: Path

    @classmethod
    def around(cls, path: Path) -> Repository:
        """The repository that contains a path.

        Raises:
            UsageError: if there is none.
        """
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        return cls(Path(cls(folder)._git("rev-parse", "--show-toplevel")))

    def commits(self, good: str, bad: str) -> list[str]:
        """The commits from the good one to the bad one along first parents, both included.

        Raises:
            UsageError: for what is no commit, and a good one that is none of them.
        """
        first, last = self._commit("--good", good), self._commit("--bad", bad)
        if first == last:
            raise UsageError(f"--good {good} and --bad {bad}: are the same commit; give an earlier one as the good one")
        chain = self._git("rev-list", "--first-parent", "--reverse", last).split()
        if first not in chain[:-1]:
            base = self._git("merge-base", first, last)
            way_out = f"; give {base[:12]}, where they part" if base in chain[:-1] else ""
            way_out = "; it came in with a merge" if base == first else way_out
            raise UsageError(f"--good {good}: is none of the commits before {bad} along first parents{way_out}")
        return chain[chain.index(first) :]

    def _commit(self, option: str, revision: str) -> str:
        try:
            return self._git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
        except UsageError:
            raise UsageError(
                f"{option} {revision}: is no commit of {self.top}; give a tag, a branch or a hash"
            ) from None

    def subject(self, commit: str) -> str:
        """The first line of a commit's message."""
        return self._git("log", "-1", "--format=%s", commit)

    def add(self, commit: str, path: Path) -> None:
        """Check a commit out into a new worktree.

        Raises:
            UsageError: if that fails.
        """
        self._git("worktree", "add", "--detach", "--force", str(path), commit)

    def remove(self, path: Path) -> None:
        """Remove a worktree, and what git knows of it; one that is gone, too."""
        with suppress(UsageError):
            self._git("worktree", "remove", "--force", "--force", str(path))
        rmtree(path, ignore_errors=True)

    def worktrees(self, folder: Path) -> list[Path]:
        """The worktrees in a folder, also those that are gone."""
        lines = self._git("worktree", "list", "--porcelain").splitlines()
        paths = [Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")]
        return [path for path in paths if path.parent == folder]

    def _git(self, *arguments: str) -> str:
        command = ["git", *_QUIET, "-C", str(self.top), *arguments]
        environment: Mapping[str, str] = {**without_git(), "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
        try:
            done = captured(command, env=environment)
        except FileNotFoundError:
            raise UsageError("git is not installed") from None
        if done.returncode:
            message = (done.stderr.strip().splitlines() or ["it failed"])[-1]
            raise UsageError(f"{self.top}: git {arguments[0]}: {message}")
        return done.stdout.strip()


@dataclass(frozen=True, slots=True)
class Package:
    """Versions of a package, each in a folder with what it needs other than what is installed here."""

    name: str

    def add(self, version: str, path: Path) -> None:
        """Install a version into an environment that shares all packages of this one; of it only the folder is used.

        Raises:
            UsageError: if pip cannot install it.
        """
        made = captured(module_command("venv", "--without-pip", path))
        if not made.returncode:
            shared = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
            (packages(path) / "shared.pth").write_text(shared)
            options = ("--python", path / "bin/python", "install", "--quiet")
            made = captured(module_command("pip", *options, f"{self.name}=={version}"))
        if made.returncode:
            message = (made.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise UsageError(f"{self.name} {version}: cannot be installed: {message}")

    def remove(self, path: Path) -> None:
        """Remove an environment."""
        rmtree(path, ignore_errors=True)

    def worktrees(self, folder: Path) -> list[Path]:
        """None that the folder does not have."""
        return []


def packages(path: Path) -> Path:
    """The folder of an environment that goes in front of the path of modules."""
    return next(path.glob("lib/python*/site-packages"))
