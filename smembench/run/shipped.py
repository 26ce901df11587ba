"""The configs that come with the package."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path


def shipped() -> dict[str, Path]:
    """The configs that come with the package, by name: beside it in a checkout, within it where it was installed."""
    package = Path(__file__).parents[1]
    within, beside = package / "configs", package.parent / "configs"
    return {path.stem: path for path in sorted((within if within.is_dir() else beside).glob("*.toml"))}


def about(path: Path) -> str:
    """Description of a config: the first sentence of the comment at its top, below the reference to its schema."""
    lines = takewhile(lambda line: line.startswith("#"), path.read_text().splitlines())
    return " ".join(line.lstrip("# ") for line in lines if not line.startswith("#:")).partition(". ")[0].rstrip(".")
