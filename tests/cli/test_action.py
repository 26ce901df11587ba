"""The GitHub Action: its scripts, run in a repository of two commits with a stand-in for GitHub's own command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml", reason="needs PyYAML, which comes with the extra fleet")
ACTION = Path(__file__).parents[2] / ".github/actions/compare/action.yml"
CONFIG = """rounds = 1
samples = 3
max_seconds = 0.2
[[sweep]]
problem = "transpose"
kernel = "memcpy"
n = 16
device = "cpu"
"""


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=one", "-c", "user.email=one@example.org"]
    return subprocess.run(
        ["git", *named, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.slow
def test_a_pull_request_gets_a_comment_with_the_comparison(tmp_path: Path) -> None:
    repository, tools, temporary = (tmp_path / name for name in ("repository", "tools", "temporary"))
    for folder in (repository, tools, temporary):
        folder.mkdir()
    git(repository, "init", "--quiet")
    for commit in ("base", "head"):
        (repository / "mine.toml").write_text(f"# {commit}\n{CONFIG}")
        git(repository, "add", ".")
        git(repository, "commit", "--quiet", "--message", commit)
    scripts = {
        "smembench": f'#!/bin/sh\nexec {sys.executable} -P -m smembench "$@"\n',
        "gh": f'#!/bin/sh\necho "$@" > {tmp_path}/commented\n',
    }
    for name, text in scripts.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    inputs = {
        "inputs.config": "mine.toml",
        "inputs.threshold": "20",
        "inputs.token": "secret",
        "github.event.pull_request.base.sha": git(repository, "rev-parse", "HEAD~1"),
        "github.event.pull_request.number": "7",
    }
    env = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(temporary),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ (.+?) \}\}", lambda result: inputs[result[1]], text)

    def ran(step: dict[str, Any]) -> int:
        own = {name: filled(text) for name, text in step.get("env", {}).items()}
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", filled(step["run"])]
        return subprocess.run(command, cwd=repository, env={**env, **own}, timeout=300, check=False).returncode

    measure, comment, fail = yaml.safe_load(ACTION.read_text())["runs"]["steps"]
    assert ran(measure) == 0
    inputs["steps.compare.outputs.exit-code"] = (tmp_path / "output").read_text().strip().partition("=")[2]
    assert "of 1 case" in (tmp_path / "summary.md").read_text()
    assert ran(comment) == 0
    assert (tmp_path / "commented").read_text().startswith("pr comment 7 --edit-last --create-if-none --body-file")
    assert str(ran(fail)) == inputs["steps.compare.outputs.exit-code"]
    assert git(repository, "worktree", "list").count("\n") == 0
    assert len([*(temporary / "smembench/before").iterdir()]) == len([*(temporary / "smembench/after").iterdir()]) == 2
