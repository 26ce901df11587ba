"""Machine code on disk: what is read again, what is compiled anew, and what is never kept."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from smembench.kernels import registry
from smembench.model.case import Block, Case
from smembench.toolchains import kept_code, numba
from smembench.toolchains import machine_code as machine_codes
from smembench.toolchains.kept_code import kept

ROOT = Path(__file__).parents[2]
CASE = Case("transpose", "copyGmem", "cuda:0", "float32", 8, 8, None, Block(16, 16))


class Compiler:
    """Says how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> tuple[str, bytes]:
        self.asked += 1
        return "Used 40 registers\0", b"\0code\0"


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compiler:
    """One whose results are kept in a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(numba.TOOLCHAIN, "libraries", dict)
    return Compiler()


def test_code_is_compiled_again_only_if_what_decides_it_changed(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        assert kept(CASE, numba.TOOLCHAIN, ("9.0",), compiler) == ("Used 40 registers", b"\0code\0")
    assert compiler.asked == 1
    kept(CASE, numba.TOOLCHAIN, ("8.0",), compiler)
    assert compiler.asked == 2
    monkeypatch.setattr(kept_code, "_version", lambda package: "another")
    kept(CASE, numba.TOOLCHAIN, ("9.0",), compiler)
    assert compiler.asked == 3
    monkeypatch.setenv("NUMBA_OPT", "1")
    kept(CASE, numba.TOOLCHAIN, ("9.0",), compiler)
    assert compiler.asked == 4
    monkeypatch.setattr(kept_code, "sources", lambda: "another")
    kept(CASE, numba.TOOLCHAIN, ("9.0",), compiler)
    assert compiler.asked == 5


@pytest.mark.parametrize("damage", ["", "half", "a byte less", "a digit", "another byte", "a folder"])
def test_a_damaged_file_is_made_anew(compiler: Compiler, tmp_path: Path, damage: str) -> None:
    whole = kept(CASE, numba.TOOLCHAIN, ("9.0",), compiler)
    (path,) = (tmp_path / "smembench").iterdir()
    content = path.read_bytes()
    edited = {
        "": b"",
        "half": content[: len(content) // 2],
        "a byte less": content[:-1],
        "a digit": content.replace(b"40 registers", b"94 registers"),
        "another byte": b"\1" + content[1:],
    }
    path.unlink()
    path.mkdir() if damage == "a folder" else path.write_bytes(edited[damage])
    assert [kept(CASE, numba.TOOLCHAIN, ("9.0",), compiler) for _ in range(2)] == [whole, whole]
    assert compiler.asked == (3 if damage == "a folder" else 2)
    assert [*(tmp_path / "smembench").iterdir()] == [path]


def test_kernels_in_the_users_files_are_compiled_each_time(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    of_user = replace(registry.kernel_of(CASE), file="mine.py")
    monkeypatch.setattr(registry, "kernel_of", lambda case: of_user)
    for _ in range(2):
        kept(CASE, numba.TOOLCHAIN, ("9.0",), compiler)
    assert compiler.asked == 2


def test_without_a_folder_code_is_compiled_all_the_same(
    compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    for _ in range(2):
        assert kept(CASE, numba.TOOLCHAIN, ("9.0",), compiler)[1] == b"\0code\0"
    assert compiler.asked == 2


def test_the_oldest_files_are_deleted(compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_code, "_MOST", 3)
    for number in range(5):
        kept(CASE, numba.TOOLCHAIN, (number,), compiler)
    assert len([*(tmp_path / "smembench").iterdir()]) == 3
    kept(CASE, numba.TOOLCHAIN, (4,), compiler)
    assert compiler.asked == 5


def test_a_compilers_code_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = []
    for _ in range(2):
        monkeypatch.setattr(machine_codes, "_compiled", {})
        result.append(machine_codes.machine_code(CASE, "9.0"))
    if result[0] is None:
        pytest.skip("needs NVVM and nvJitLink: pip install 'smembench[cu13]'")
    assert [*(tmp_path / "smembench").iterdir()]
    assert result[1] == result[0]
    assert result[1].lined == result[0].lined


ON_THE_CPU = """
import os, sys
from pathlib import Path
import numpy as np
from numba import njit, prange
from numba.core import event
from numba.core.registry import cpu_target
from numba.parfors.parfor import Parfor
from smembench.toolchains.host_code import keep

class Counter(event.Listener):
    compiled = 0

    def on_start(self, event):
        self.compiled += event.data["dispatcher"].py_func.__name__ == "fill"

    def on_end(self, event):
        pass

def fill(value, parallel=False):
    @njit(parallel=parallel)
    def fill(out):
        for i in prange(out.size):
            out[i] = value

    keep(fill)
    fill(out := np.zeros(5))
    assert (out == value).all(), f"{out} is not {value}"

def files():
    return [*Path(os.environ["XDG_CACHE_HOME"]).rglob("?" * 64)]

Parfor.__hash__ = lambda self: 7  # as if the loops of all processes lay at one address
event.register("numba:compile", counter := Counter())
cpu_target.target_context.refresh()
for process in sys.argv[1:]:
    if os.fork() == 0:
        exec(process)
        print(counter.compiled, flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, process
"""
"""Each argument is what a process does; it prints how often it compiled."""


def compiled_on_the_cpu(cache: Path, *processes: str) -> list[int]:
    command = [sys.executable, "-c", ON_THE_CPU, *processes]
    env = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache), "HOME": str(cache)}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return [*map(int, ran.stdout.split())]


def test_a_function_for_the_cpu_is_compiled_again_only_if_what_decides_it_changed(tmp_path: Path) -> None:
    anew = {
        "another number": "fill(3)",
        "another setting": "os.environ['NUMBA_OPT'] = '1'; fill(2)",
        "another version": "import smembench.toolchains.host_code as h; h.version = lambda name: 'another'; fill(2)",
        "other sources": "import smembench.toolchains.kept_code as k; k.sources = lambda: 'others'; fill(2)",
        "another CPU": "from numba.core.codegen import JITCPUCodegen as c; c.magic_tuple = lambda _: 0; fill(2)",
        "damaged": "[path.write_bytes(path.read_bytes()[:-1]) for path in files()]; fill(2)",
    }
    assert compiled_on_the_cpu(tmp_path, "fill(2)", "fill(2)", *anew.values(), "fill(2)") == [1, 0, *[1] * len(anew), 0]
    assert {path.parent.name for path in tmp_path.rglob("*") if path.is_file()} == {"smembench"}


def test_a_function_for_the_cpu_is_compiled_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert compiled_on_the_cpu(tmp_path / "file", "fill(2)", "fill(2)") == [1, 1]


def test_functions_for_the_cpu_of_several_processes_are_told_apart(tmp_path: Path) -> None:
    """Numba gives both the same number in a process of its own, and their loops the same name."""
    counts = compiled_on_the_cpu(
        tmp_path, "fill(2, True)", "fill(3, True); fill(2, True)", "fill(2, True); fill(3, True); fill(4, True)"
    )
    assert counts == [1, 2, 1]
