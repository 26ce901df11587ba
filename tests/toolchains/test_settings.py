"""Settings that decide the code: which count, what Numba makes of them, and with which nothing is timed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Program
from smembench.model.errors import UsageError
from smembench.toolchains.settings import _UNOPTIMISED, FILE, settings

SMALL = ("matmul", "--n", 64, "--kernel", "cpu", "--quick")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory and an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in settings():
        monkeypatch.delenv(name)
    return tmp_path


@pytest.mark.parametrize(
    "setting",
    [
        *("NUMBA_OPT=2", "NUMBA_OPT=max", "NUMBA_DISABLE_JIT=1", "NUMBA_LOOP_VECTORIZE=0", "NUMBA_ENABLE_AVX=0"),
        *("NUMBA_NUM_THREADS=4711", "NUMBA_DEBUGINFO=1", "NUMBA_OF_A_LATER_VERSION=1", "CUDA_FORCE_PTX_JIT=1"),
        *("CUDA_DISABLE_PTX_JIT=1", "CUDA_LAUNCH_BLOCKING=1", "NVIDIA_TF32_OVERRIDE=0", "OMP_PROC_BIND=true"),
    ],
)
def test_what_decides_code_or_time_is_a_setting(setting: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _, value = setting.partition("=")
    monkeypatch.setenv(name, value)
    assert settings() == {name: value}


@pytest.mark.parametrize(
    "setting",
    [
        *("NUMBA_CACHE_DIR=/cache", "NUMBA_OPT=3", "NUMBA_DISABLE_JIT=0", "NUMBA_DISABLE_JIT=", "NUMBA_DUMP_IR=1"),
        *("NUMBA_LOOP_VECTORIZE=1", "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS=0", "CUDA_CACHE_PATH=/cache"),
        *("CUDA_CACHE_DISABLE=1", "CUDA_VISIBLE_DEVICES=1", "CUDA_HOME=/cuda", "CUDA_FORCE_PTX_JIT=0", "HOME=/home"),
        f"NUMBA_NUM_THREADS={len(os.sched_getaffinity(0))}",
    ],
)
def test_what_decides_neither_is_none(setting: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, _, value = setting.partition("=")
    monkeypatch.setenv(name, value)
    assert settings() == {}


def test_numbas_file_counts_and_variables_override_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("yaml")
    (folder / FILE).write_text("opt: '1'\ncache_dir: /cache\nnum_threads: 4711\n")
    monkeypatch.setenv("NUMBA_OPT", "2")
    assert settings() == {"NUMBA_NUM_THREADS": "4711", "NUMBA_OPT": "2"}
    (folder / FILE).write_text("opt: [")
    with pytest.raises(UsageError, match=FILE):
        settings()


@pytest.mark.parametrize("setting", ["NUMBA_DISABLE_JIT=1", "NUMBA_OPT=0"])
def test_what_is_not_compiled_or_not_optimised_is_not_timed(program: Program, setting: str, tmp_path: Path) -> None:
    ran = program(*SMALL, cwd=tmp_path, **dict([setting.split("=")]))
    assert (ran.returncode, ran.stdout) == (2, "")
    (line,) = ran.stderr.splitlines()
    assert f"{setting}: " in line
    assert line.endswith(f"unset {setting.partition('=')[0]}")


@pytest.mark.parametrize("command", [SMALL, ("explain", "tiled", "--n", "64")])
def test_a_number_of_threads_that_numba_refuses_is_one_line(
    program: Program, command: tuple[str, ...], tmp_path: Path
) -> None:
    ran = program(*command, cwd=tmp_path, NUMBA_NUM_THREADS=0)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "smembench: NUMBA_NUM_THREADS=0: Numba needs at least one thread; correct it, or unset it\n"


def test_a_file_that_switches_the_compiler_off_is_refused_and_shown_by_doctor(program: Program, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    (tmp_path / FILE).write_text("disable_jit: 1\n")
    ran = program(*SMALL, "--dry-run", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"remove disable_jit from {FILE}" in ran.stderr
    (tmp_path / FILE).write_text("disable_jit: [\n")
    (line,) = program(*SMALL, cwd=tmp_path, NUMBA_COLOR_SCHEME="no_color").stderr.splitlines()
    assert line.startswith(f"smembench: {FILE}: Numba cannot read it: ")
    (tmp_path / FILE).write_text("disable_jit: 1\n")
    examined = program("doctor", cwd=tmp_path, CUDA_FORCE_PTX_JIT=1)
    assert examined.returncode == 1
    assert "BAD  NUMBA_DISABLE_JIT=1: " in examined.stdout
    assert "--   CUDA_FORCE_PTX_JIT=1: " in examined.stdout


def test_numba_is_imported_only_where_a_setting_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker of NumPy's functions begins without it, in half the time."""
    asked = "import sys, smembench.toolchains.settings as s; print(s.unoptimised(), 'numba' in sys.modules)"
    for value, output in (("3", "{} False"), ("1", "{} True")):
        monkeypatch.setenv("NUMBA_OPT", value)
        ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
        assert ran.stdout.strip() == output


def test_numbas_config_has_the_names_that_it_is_asked_for() -> None:
    """A name that is gone would let kernels that are not optimised be timed."""
    from numba.core import config

    assert [name for name in (*_UNOPTIMISED.values(), "OPT", "ENABLE_CUDASIM") if not hasattr(config, name)] == []
