"""The wheel from an empty folder: every command of README, and the Python of README and smembench/README.md."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Generator
from pathlib import Path

import pytest

from campaign import CAMPAIGN
from conftest import DOCUMENTS, NIGHTLY, QUICK, ROOT
from warm import WarmPython

pytestmark = pytest.mark.slow

README = (ROOT / "README.md").read_text(encoding="utf-8")
KERNEL = """extern "C" __global__ void transpose(const float* given, float* out) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = given[y * 4096 + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    out[y * 4096 + x] = tile[threadIdx.x][threadIdx.y];
}
"""
CHECK = "def reference(given, out):\n    return given.T\n"
TESTS = """
import numpy as np
import pytest
import smembench
from numba import cuda, float32

@cuda.jit
def transpose(out, given):
    tile = cuda.shared.array((32, 33), float32)
    x, y = cuda.grid(2)
    tile[cuda.threadIdx.y, cuda.threadIdx.x] = given[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 32 + cuda.threadIdx.x
    y = cuda.blockIdx.x * 32 + cuda.threadIdx.y
    out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]

@cuda.jit
def kernel(out, given, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = given[i]

given = np.zeros((4096, 4096), np.float32)
out = np.empty_like(given)
reference = "none"

def test_the_page():
    with pytest.raises(smembench.DeviceUnavailable):  # by the last line
        exec(PAGE, globals())
"""
"""A user's tests, with what the blocks of both pages take for granted."""
WHOLE = CAMPAIGN > 1
"""Whether commands that tests of the source tree run are run at length from the wheel, too."""
SMALLER = {"1k:8k:*2": "8:32:*2", "1024": "64", "1024,2097152": "64", "bounds": "bounds" if WHOLE else "scope"}
"""Words of README's commands and what stands in their place; tests/studies/test_lesson.py runs parts of lessons."""
BRIEFLY = {
    "transpose": ("--kernel", "memcpy,copyGmem", *QUICK),
    "matmul": QUICK if WHOLE else ("--kernel", "cpu", *QUICK),
    "reduction": ("--n", 64, *QUICK),
    "constant": ("--n", 64, *QUICK),
    "latency": QUICK,
    "transfer": QUICK,
    "reproduce": (*QUICK, "--max-seconds", 0.01) if WHOLE else ("--dry-run",),
    "tune transpose": ("--n", 16, "--dry-run"),
    "ladder matmul": ("--n", 16, *QUICK) if WHOLE else ("--n", 16, "--dry-run"),
    "run quick": ("--set", "transpose.kernel=memcpy", "--set", "n=16", "--output", "elsewhere", *QUICK),
    "run nightly": ("--set", "transpose.kernel=memcpy", "--set", "matmul.kernel=cpu", "--set", "n=16", *QUICK),
}
"""What makes a command of README short, by its first words."""
ENDS = {
    "time": 4,
    "access": 4,
    "probe": 4,
    "compilers": 4,
    "fleet run": 4,
    "bisect": 2,  # there is no such config
    "run --resume": 2,  # there is no such run
    "compare": 3,
}
"""Exit codes other than 0, by the command's first words: 4 where it needs a GPU."""


def unpacked(folder: Path) -> Path:
    """The wheel as pip would install it, but for the script."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=60)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    pytest.importorskip("hatchling")
    pytest.importorskip("hatch_fancy_pypi_readme")
    site = unpacked(tmp_path_factory.mktemp("wheel"))
    return {**os.environ, "PYTHONPATH": str(site), "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "80"}


@pytest.fixture(scope="module")
def installed(env: dict[str, str]) -> Generator[WarmPython]:
    warm = WarmPython(env)
    yield warm
    warm.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Empty but for a kernel, and for the stored runs whose names README makes up."""
    (tmp_path / "mine.cu").write_text(KERNEL)
    (tmp_path / "mine.py").write_text(CHECK)
    runs = sorted((ROOT / "results/reference/slowdown").iterdir())
    names = {"20260101T020000Z-nightly": NIGHTLY, "<before>": runs[0], "<after>": runs[-1]}
    for name, run in names.items():
        shutil.copytree(run, tmp_path / "results" / name)
    return tmp_path


def commands(section: str) -> list[list[str]]:
    """The arguments of README's commands in a section."""
    text = README.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [shlex.split(line, comments=True)[1:] for line in re.findall(r"^smembench .*$", text, flags=re.MULTILINE)]


@pytest.mark.parametrize("section", ["Learn CUDA", "Tune a kernel of your own", "Watch GPUs", "Commands"])
def test_the_wheel_runs_every_command_of_readme(
    installed: WarmPython, env: dict[str, str], folder: Path, section: str
) -> None:
    """Those that need a GPU end with one line that says so."""
    if section == "Watch GPUs":
        shutil.rmtree(folder / "results")  # a first night
    assert commands(section)
    for words in commands(section):
        names = words[0], " ".join(words[:2])
        brief = next((BRIEFLY[name] for name in names if name in BRIEFLY), ())
        arguments = [SMALLER.get(word, word) for word in words] + [str(word) for word in brief]
        ended = installed.run(arguments, folder, env)
        without_gpu = 4 if "--sustained" in words else 0
        assert ended.returncode == next((ENDS[name] for name in names if name in ENDS), without_gpu), (
            words,
            ended.stdout,
            ended.stderr,
        )
        if ended.returncode in (2, 4):
            assert re.fullmatch(r"smembench: .*\n", ended.stderr), (words, ended.stderr)
        else:
            assert ended.stdout + ended.stderr, words
            assert not re.search("Traceback|Warning", ended.stderr), (words, ended.stderr)


def test_the_wheel_judges_the_claims_that_reproduce_does(
    installed: WarmPython, env: dict[str, str], folder: Path
) -> None:
    """Those of a stored run: to measure one from the wheel takes half a minute."""
    ended = installed.run(["show", str(DOCUMENTS), "--documents"], folder, env)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert re.search(r"\d+ claims: \d+ hold", ended.stdout)


def test_the_wheel_runs_the_python_of_the_pages(env: dict[str, str], folder: Path) -> None:
    page = (ROOT / "smembench/README.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL))
    blocks = blocks.replace("max_seconds=2", "max_seconds=0.01, kernel='copyGmem', output='results'").replace(
        "results/<after>", "last"
    )
    (tests,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (folder / "test_mine.py").write_text(f"PAGE = {blocks!r}\n{TESTS}\n{tests}")
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
    ended = subprocess.run(pytest_, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert "2 passed, 1 skipped" in ended.stdout, ended.stdout + ended.stderr
