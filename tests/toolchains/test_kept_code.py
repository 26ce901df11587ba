"""Machine code on disk: what is read again, what is compiled anew, and what is never kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from smembench.kernels import registry
from smembench.model.case import Block, Case
from smembench.toolchains import kept_code, numba
from smembench.toolchains import machine_code as machine_codes
from smembench.toolchains.kept_code import kept

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
    monkeypatch.setattr(kept_code, "_sources", lambda: "another")
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
    found = []
    for _ in range(2):
        monkeypatch.setattr(machine_codes, "_compiled", {})
        found.append(machine_codes.machine_code(CASE, "9.0"))
    if found[0] is None:
        pytest.skip("needs NVVM and nvJitLink: pip install 'smembench[cu13]'")
    assert [*(tmp_path / "smembench").iterdir()]
    assert found[1] == found[0]
    assert found[1].lined == found[0].lined
