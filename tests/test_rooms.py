"""The package's rooms stand in the order that the data takes, and each imports only those before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "smembench"
ROOMS = (
    "stats",
    "model",
    "kernels",
    "toolchains",
    "launches",
    "devices",
    "store",
    "run",
    "explain",
    "studies",
    "views",
    "report",
    "cli",
)
FACE = ("README.md", "__init__.py", "__main__.py", "py.typed")
MODULES = sorted(path for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """The rooms that a module imports, wherever in it; "" for the package's face."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            module = node.module or ""
            names = [f"smembench.{alias.name}" for alias in node.names] if module == "smembench" else [module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            root, _, rest = name.partition(".")
            if root == "smembench":
                yield rest.partition(".")[0]


def test_beside_the_rooms_there_is_only_the_face() -> None:
    result = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert result == {*ROOMS, *FACE}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_what_stands_before_it(path: Path) -> None:
    room = path.relative_to(PACKAGE).parts[0]
    allowed = ROOMS[: ROOMS.index(room) + 1]
    assert [name for name in imported(path) if name not in allowed] == []
