"""`smembench bisect` on the fake driver: a repository of CUDA kernels, cut off and gone on with."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from time import monotonic, sleep

import pytest

from conftest import records
from fake_driver.host_code import HostKernel, compile_for_host
from fake_driver.process import FakeDriver, ended

pytestmark = pytest.mark.slow

KERNEL = """
__global__ void work(float *out, const float *in, {index} n)
{{
    {index} i = blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        out[i] = in[i];{more}
}}
"""
HOST = """
typedef float T;
static void {name}(T *out, const T *in, unsigned n)
{{
    unsigned i = blockIdx.x * 128 + threadIdx.x;
    for (volatile unsigned pass = 0; pass < {passes}; pass = pass + 1)
        if (i < n)
            out[i] = in[i];
}}
"""
CONFIG = """
samples = 5
rounds = 1
precision = 90
max_seconds = 1
warmup = 0
[[sweep]]
kernel = "kernels/work.cu:work"
sizes = { n = 4000 }
grid = "cdiv(n, 128)"
block = 128
arg = ["float32[n]", "float32[n]", "n"]
out = 0
check = "none"
"""


class Git:
    """A repository, with a hook that leaves a trace."""

    def __init__(self, top: Path) -> None:
        self.top = top
        top.mkdir()
        self("init", "-q", "-b", "main")
        self("config", "user.email", "someone@example.org")
        self("config", "user.name", "Someone")
        hook = top / ".git/hooks/post-checkout"
        hook.write_text(f"#!/bin/sh\ntouch {top.parent}/hooked\n")
        hook.chmod(0o755)

    def __call__(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.top, check=True, capture_output=True, text=True, timeout=60
        ).stdout.strip()

    def commit(self, subject: str, index: str = "", more: str = "") -> str:
        """Commit a kernel, or another file."""
        path = self.top / ("kernels/work.cu" if index else "notes.txt")
        path.parent.mkdir(exist_ok=True)
        path.write_text(KERNEL.format(index=index, more=more) if index else subject)
        self("add", "-A")
        self("commit", "-q", "-m", subject)
        return self("rev-parse", "HEAD")

    @property
    def state(self) -> list[str]:
        """What no search may change."""
        commands = ("status --porcelain", "stash list", "branch -v", "worktree list", "reflog", "diff --cached")
        return [self(*command.split()) for command in commands]


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel by the types that its name in machine code has: by a signed index it takes three times as long."""
    forms = [
        HostKernel(name, f"4workPfPKf{letter}", HOST.format(name=name, passes=passes), (128, 1), 2, 1)
        for name, letter, passes in (("quick", "j", 20), ("slow", "i", 60))
    ]
    return compile_for_host(forms, tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Git, dict[str, str]]:
    """Commits with a merge and a broken one, and a checkout that is not clean."""
    git, named = Git(tmp_path / "repository"), {}
    (git.top / "work.toml").write_text(CONFIG)
    named["good"] = git.commit("First", "unsigned")
    git("checkout", "-q", "-b", "side")
    git.commit("On the side")
    git("checkout", "-q", "main")
    git.commit("Third", "unsigned", " // by a comment")
    git("merge", "-q", "--no-ff", "-m", "Merged", "side", "-X", "ours")
    named["broken"] = git.commit("Broken", "unsigned", " missing;")
    named["culprit"] = git.commit("Signed index", "int")
    (git.top / "notes.txt").write_text("mine, not committed")
    (git.top / "staged.txt").write_text("mine, staged")
    git("add", "staged.txt")
    (tmp_path / "hooked").unlink(missing_ok=True)
    return git, named


def test_the_commit_is_found_though_the_search_is_killed_and_the_checkout_is_as_it_was(
    fake_driver: FakeDriver, kernels: Path, repository: tuple[Git, dict[str, str]], tmp_path: Path
) -> None:
    git, named = repository
    before = git.state
    runs = tmp_path / "runs"
    command = ("smembench", "bisect", "--good", named["good"], git.top / "work.toml", "--case", "*work*", "-o", runs)
    killed = fake_driver(*command, kernels=kernels, tmpdir=tmp_path)
    begun = monotonic()
    while monotonic() - begun < 60:
        states = list(runs.glob("*/bisect.json"))
        if states and len(json.loads(states[0].read_text())["trials"]) >= 4:
            break
        sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (folder,) = (path.parent for path in runs.glob("*/bisect.json"))
    known = json.loads((folder / "bisect.json").read_text())["trials"]
    out, err = ended(fake_driver("smembench", "bisect", "--resume", folder, "--export", "-.csv", kernels=kernels))
    state = json.loads((folder / "bisect.json").read_text())
    assert state["trials"][: len(known)] == known
    assert git.state == before
    assert not (tmp_path / "hooked").exists()
    assert not Path(state["worktrees"]).exists()
    found = {row["subject"]: row for row in records(out)}
    assert found["Signed index"]["verdict"] == "first slower", err
    assert found["Signed index"]["commit"] == named["culprit"]
    assert float(found["Signed index"]["ratio"]) > 1.5
    assert "On the side" not in state["subjects"]
    assert "missing" in found["Broken"]["verdict"]
    assert len(found) <= 6
    shown, _ = ended(fake_driver("smembench", "bisect", "--resume", folder, kernels=kernels))
    assert "The first slower commit: " in shown
    assert "machine code changed" in shown
    assert "or what was skipped between them: " in shown
    assert ended(fake_driver("smembench", "history", runs, kernels=kernels), 2)  # other commits' runs are in none


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--good", "HEAD", "--bad", "HEAD~1"), 2, "is none of the commits before HEAD~1 along first parents"),
        (("--good", "side"), 2, "is none of the commits before HEAD along first parents; it came in with a merge"),
        (("--good", "nothing"), 2, "git rev-parse:"),
        (("--good", "HEAD~1", "--case", "*other*"), 2, "--case '*other*': none of the 1 cases"),
        (("--good", "HEAD~2", "--bad", "HEAD~1"), 1, "the bad commit cannot be measured: "),
    ],
    ids=str,
)
def test_what_cannot_be_searched_is_refused(
    fake_driver: FakeDriver,
    kernels: Path,
    repository: tuple[Git, dict[str, str]],
    tmp_path: Path,
    options: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    git, _ = repository
    before = git.state
    command = ("smembench", "bisect", git.top / "work.toml", "-o", tmp_path / "runs", *options)
    _, err = ended(fake_driver(*command, kernels=kernels), code)
    assert said in err
    assert git.state == before
