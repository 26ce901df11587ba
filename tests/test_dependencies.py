"""pyproject.toml declares what the package and its tests import, and nothing else."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
DISTRIBUTIONS = {
    "cupti": "cupti-python",
    "cupy": "cupy-cuda13x",
    "elftools": "pyelftools",
    "numba.cuda": "numba-cuda",
    "pynvml": "nvidia-ml-py",
    "vl_convert": "vl-convert-python",
    "markdown_it": "markdown-it-py",
}
"""Packages as they are installed, where the name of what is imported differs in more than an underscore."""
BY_NAME = {"numba-cuda"}
"""Imported by kernels/numba_cuda.py without a statement."""
NOWHERE_DECLARED = {"pytest", "torch"}
"""pytest is what imports the package's plugin. PyTorch is measured where it is installed: it is too large, and which
one to install depends on the GPU's driver."""


def declared(*requirements: str) -> set[str]:
    names = {re.match(r"[\w-]+", item)[0] for item in requirements}  # type: ignore[index]
    return {name.replace("_", "-").lower() for name in names} - {"smembench"}


CORE = declared(*PROJECT["dependencies"])
OPTIONAL = declared(*(item for name, extra in EXTRAS.items() if name != "dev" for item in extra))


def test_the_engine_of_which_private_names_are_used_has_both_bounds() -> None:
    (engine,) = EXTRAS["mlir"]
    result = re.fullmatch(r"numba-cuda-mlir>=(\d+\.\d+),<(\d+\.\d+)", engine)
    assert result
    lowest, beyond = (tuple(map(int, bound.split("."))) for bound in result.groups())
    assert beyond == (lowest[0], lowest[1] + 1)
    if find_spec("numba_cuda_mlir"):
        assert lowest <= tuple(map(int, version("numba-cuda-mlir").split(".")[:2])) < beyond


def distribution(module: str) -> str:
    """What to install for an import: the top package's name, or that of two levels of a namespace."""
    parts = module.split(".")
    for known in (".".join(parts[:2]), parts[0]):
        if known in DISTRIBUTIONS:
            return DISTRIBUTIONS[known]
    return "-".join(parts[: 2 if parts[0] == "cuda" else 1]).replace("_", "-")


def imports(node: ast.AST, *, everywhere: bool) -> Iterator[str]:
    """The modules that a syntax tree imports; those in functions and under TYPE_CHECKING only if ``everywhere``."""
    for child in ast.iter_child_nodes(node):
        late = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        )
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module is not None:
            # From a namespace, the names are packages.
            yield from (f"cuda.{alias.name}" for alias in child.names) if child.module == "cuda" else (child.module,)
        elif everywhere or not late:
            yield from imports(child, everywhere=everywhere)


def imported(folder: str, *, everywhere: bool = True) -> set[str]:
    own = {
        name
        for place in ("tests", ".ci")
        for path in (ROOT / place).rglob("*.py")
        for name in (path.stem, path.parent.name)
    }
    result = set()
    for path in (ROOT / folder).rglob("*.py"):
        modules = imports(ast.parse(path.read_text(encoding="utf-8")), everywhere=everywhere)
        tops = {name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names | own}
        result |= {distribution(name) for name in tops}
    return result - {"smembench"}


def test_what_the_package_imports_is_declared() -> None:
    assert imported("smembench") - CORE - OPTIONAL == NOWHERE_DECLARED


def test_what_is_imported_with_a_module_is_no_extra() -> None:
    assert imported("smembench", everywhere=False) <= CORE | {"pytest"}


def test_nothing_is_declared_that_nothing_imports() -> None:
    assert CORE - imported("smembench") == BY_NAME


@pytest.mark.parametrize("folder", ["tests", ".ci"])
def test_what_the_tests_import_is_declared(folder: str) -> None:
    known = CORE | OPTIONAL | declared(*EXTRAS["dev"])
    assert imported(folder) <= known | NOWHERE_DECLARED
