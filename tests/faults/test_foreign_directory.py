"""What lies in the working directory is not imported in place of a library's module, by no process of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import records
from smembench.model.child import child_command
from smembench.model.errors import WorkerUnusable
from smembench.run import worker

ROOT = Path(__file__).parents[2]
SHADOWS = ("statistics", "csv", "queue", "signal", "select", "typing", "json", "ctypes", "numpy", "numba", "pandas")
QUICK = ("--n", "16", "--device", "cpu", "--samples", "3", "--rounds", "1", "--max-seconds", "1", "--csv", "-")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with files that are called like modules of libraries, and that tell when they are imported."""
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text(
            f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})\nraise SystemExit(9)\n"
        )
    return tmp_path


def ended(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": "", **variables}
    env.pop("PYTHONPATH", None)
    ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert not (folder / "imported").exists(), (folder / "imported").read_text()
    return ran


@pytest.mark.parametrize(
    "program",
    [[sys.executable, "-m", "smembench"], [str(Path(sys.executable).with_name("smembench"))]],
    ids=["m", "script"],
)
def test_the_worker_imports_what_the_parent_imports(hostile: Path, program: list[str]) -> None:
    if not Path(program[-1]).exists() and len(program) == 1:
        pytest.skip("smembench is not installed beside this Python")
    ran = ended([*program, "matmul", "--kernel", "cpu", *QUICK], hostile)
    assert ran.returncode == 0, ran.stderr
    assert {row["status"] for row in records(ran.stdout)} == {"ok"}


@pytest.mark.slow
def test_lessons_and_kernel_files_do_too_and_a_kernel_file_finds_its_folder(hostile: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "helper_of_mine.py").write_text("NAME = 'mine'\n")
    (folder / "kernels.py").write_text(
        "from helper_of_mine import NAME\n"
        "from smembench.kernels.kernel import Kernel\n"
        "from smembench.kernels.program import HostFunction\n"
        "def fill(out, inp, nx, ny):\n    out[:] = inp.reshape(int(ny), int(nx)).T.ravel()\n"
        "build = lambda case: HostFunction(fill)\n"
        "KERNEL = Kernel('transpose', NAME, 'cpu', 'transposes', build, 'transpose', blocks=False)\n"
    )
    program = [sys.executable, "-m", "smembench"]
    mine = {"SMEMBENCH_KERNELS": str(folder / "kernels.py")}
    ran = ended([*program, "transpose", "--kernel", "mine", *QUICK], hostile, **mine)
    assert [row["status"] for row in records(ran.stdout) if row["kernel"] == "mine"] == ["ok"], ran.stderr
    ran = ended([*program, "lesson", "barrier", "--device", "cpu"], hostile)
    assert ran.returncode == 0, ran.stderr


def test_a_process_that_cannot_run_its_module_says_what_failed() -> None:
    ran = subprocess.run(child_command("smembench.nothing"), capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert ran.stderr.startswith("smembench: smembench.nothing: ImportError: No module named smembench.nothing")
    assert len(ran.stderr.splitlines()) == 1


def test_a_worker_that_does_not_start_is_no_missing_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "child_command", lambda *_: [sys.executable, "-c", "raise SystemExit(7)"])
    with pytest.raises(WorkerUnusable, match="cpu: the worker process exited with 7") as failed:
        worker.Worker(["cpu"])
    assert failed.value.exit_code == 1


def test_every_process_of_the_program_is_started_so() -> None:
    # What is quoted is for a script that somebody else starts.
    started = [
        path
        for path in (ROOT / "smembench").rglob("*.py")
        if "sys.executable" in path.read_text().replace("quote(sys.executable)", "")
    ]
    assert started == [ROOT / "smembench/model/child.py"]
