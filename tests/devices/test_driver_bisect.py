"""`smembench bisect` on the fake driver: a repository of CUDA kernels, cut off and gone on with."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from zipfile import ZipFile

import pytest

from conftest import records
from fake_driver.host_code import HostKernel, compile_for_host
from fake_driver.process import FakeDriver, ended
from smembench.model.errors import UsageError
from smembench.studies.bisect.repository import Repository

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
    """The kernel by the types that its name in machine code has: by a signed index it takes many times as long.

    On a busy machine a smaller step is measured again and again before it is certain.
    """
    forms = [
        HostKernel(name, f"4workPfPKf{letter}", HOST.format(name=name, passes=passes), (128, 1), 2, 1)
        for name, letter, passes in (("quick", "j", 20), ("slow", "i", 400))
    ]
    return compile_for_host(forms, tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Git, dict[str, str]]:
    """Three commits, of which a merge is broken, and a checkout that is not clean; no search may change it."""
    git, named = Git(tmp_path_factory.mktemp("git") / "repository"), {}
    (git.top / "work.toml").write_text(CONFIG)
    named["good"] = git.commit("First", "unsigned")
    git("checkout", "-q", "-b", "side")
    git.commit("On the side")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "--no-commit", "side")
    git.commit("Broken", "unsigned", " missing;")
    named["culprit"] = git.commit("Signed index", "int")
    (git.top / "notes.txt").write_text("mine, not committed")
    (git.top / "staged.txt").write_text("mine, staged")
    git("add", "staged.txt")
    (git.top.parent / "hooked").unlink()
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
        if states and len(json.loads(states[0].read_text())["trials"]) >= 2:
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
    assert not (git.top.parent / "hooked").exists()
    assert not Path(state["worktrees"]).exists()
    result = {row["subject"]: row for row in records(out)}
    assert result["Signed index"]["verdict"] == "first slower", err
    assert result["Signed index"]["commit"] == named["culprit"]
    assert float(result["Signed index"]["ratio"]) > 1.5
    assert "On the side" not in state["subjects"]
    assert "missing" in result["Broken"]["verdict"]
    assert len(result) == 3
    shown, _ = ended(fake_driver("smembench", "bisect", "--resume", folder, kernels=kernels))
    assert "The first slower commit: " in shown
    assert "machine code changed" in shown
    assert "or what was skipped between them: " in shown
    assert ended(fake_driver("smembench", "history", runs, kernels=kernels), 2)  # other commits' runs are in none


def test_ctrl_c_removes_the_worktrees_and_says_how_to_go_on(
    fake_driver: FakeDriver, kernels: Path, repository: tuple[Git, dict[str, str]], tmp_path: Path
) -> None:
    git, named = repository
    before = git.state
    built = tmp_path / "built"
    command = ("smembench", "bisect", "--good", named["good"], git.top / "work.toml", "-o", tmp_path / "runs")
    stopped = fake_driver(*command, "--build", f"pwd > {built}; exec sleep 60", kernels=kernels)
    begun = monotonic()
    while not built.exists() and monotonic() - begun < 60:
        sleep(0.05)
    stopped.send_signal(signal.SIGINT)
    _, err = ended(stopped, 130)
    (folder,) = (tmp_path / "runs").iterdir()
    assert f"interrupted; continue with: smembench bisect --resume {folder}" in err
    assert git.state == before
    assert not Path(built.read_text().strip()).parent.exists()


def wheel(folder: Path, version: str, passes: int) -> None:
    """A package of one module, as pip installs it."""
    made = f"copier-{version}.dist-info"
    with ZipFile(folder / f"copier-{version}-py3-none-any.whl", "w") as file:
        file.writestr("copier.py", f"PASSES = {passes}\n")
        file.writestr(f"{made}/METADATA", f"Metadata-Version: 2.1\nName: copier\nVersion: {version}\n")
        file.writestr(f"{made}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{made}/RECORD", "")


BY_PACKAGE = """
import copier
from cuda.bindings import driver

def copy(out, given, stream):
    (to, source) = (each.__cuda_array_interface__["data"][0] for each in (out, given))
    for _ in range(copier.PASSES):
        driver.cuMemcpyAsync(to, source, 4 * given.shape[0], stream)
"""


def test_the_version_of_a_package_is_found(
    fake_driver: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if run_pip().returncode:
        pytest.skip("needs pip 22.3 or later")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    for version, passes in (("1.0", 1), ("2.0", 40)):
        wheel(tmp_path, version, passes)
    (tmp_path / "mine.py").write_text(BY_PACKAGE)
    launched = 'kernel = "mine.py:copy"\narg = ["float32[100000]", "float32[100000]"]\nout = 0\ncheck = "none"\n'
    (tmp_path / "work.toml").write_text(CONFIG.partition("kernel")[0] + launched)
    command = ("smembench", "bisect", tmp_path / "work.toml", "-o", tmp_path / "runs", "--export", "-.json")
    out, _ = ended(fake_driver(*command, "--versions", "copier=1.0,2.0"))
    (culprit,) = json.loads(out)["culprits"]
    assert (culprit["subject"], culprit["before"]) == ("copier 2.0", "1.0")
    _, err = ended(fake_driver(*command, "--versions", "copier=1.0,3.0"), 2)
    assert "copier 3.0: cannot be installed: " in err
    _, err = ended(fake_driver(*command, "--versions", "copier"), 2)
    assert "write a package and two or more versions" in err


def run_pip() -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "pip", "--python", sys.executable, "--version"], capture_output=True)


def test_what_cannot_be_searched_is_refused(
    fake_driver: FakeDriver, kernels: Path, repository: tuple[Git, dict[str, str]], tmp_path: Path
) -> None:
    git, _ = repository
    before = git.state
    for good, bad, reason in (
        ("HEAD", "HEAD~1", "is none of the commits before HEAD~1 along first parents"),
        ("side", "HEAD", "is none of the commits before HEAD along first parents; it came in with a merge"),
        ("nothing", "HEAD", "--good nothing: is no commit of "),
        ("HEAD", "nothing", "--bad nothing: is no commit of "),
        ("HEAD", "HEAD~0", "--good HEAD and --bad HEAD~0: are the same commit"),
    ):
        with pytest.raises(UsageError, match=reason):
            Repository.around(git.top / "work.toml").commits(good, bad)
    command = ("smembench", "bisect", git.top / "work.toml", "-o", tmp_path / "runs")
    for options, code, reason in (
        (("--good", "HEAD"), 2, "--good HEAD and --bad HEAD: are the same commit"),
        (("--good", "HEAD~1", "--case", "*other*"), 2, "--case '*other*': none of the 1 cases"),
        (("--good", "HEAD~2", "--bad", "HEAD~1"), 1, "the bad commit cannot be measured: "),
    ):
        _, err = ended(fake_driver(*command, *options, kernels=kernels), code)
        assert reason in err
    assert git.state == before
