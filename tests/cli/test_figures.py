"""README's figures by pandas alone: all are those of the CSVs, and one that is changed is noticed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import figures
import pytest


def test_every_figure_is_that_of_the_stored_csvs() -> None:
    assert list(figures.wrong(figures.pages())) == []


def test_nothing_of_the_package_is_imported() -> None:
    tree = ast.parse(Path(figures.__file__).read_text(encoding="utf-8"))
    modules = {item.module or "" for item in ast.walk(tree) if isinstance(item, ast.ImportFrom)}
    modules |= {name.name for item in ast.walk(tree) if isinstance(item, ast.Import) for name in item.names}
    assert not any(module.startswith("smembench") for module in modules)


@pytest.mark.parametrize("mark", figures.FIGURES)
def test_a_marked_figure_that_is_changed_is_noticed(mark: str) -> None:
    changed, count = re.subn(
        rf"(<!-- {mark} -->[^<]*?)(\d)(?=[^<\d]*<!-- end -->)",
        lambda result: result[1] + str((int(result[2]) + 1) % 10),
        re.sub(r"\s±[\d.]+ %", "", figures.pages()),
    )
    assert count
    assert any(item.startswith(f"{mark}: ") for item in figures.wrong(changed))


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("| copyGmem | 16x16 | 0.05945 |", "| copyGmem | 16x16 | 0.05946 |"),
        ("| memcpy |  | 0.03398 | ±1.4 % | 3950 |", "| memcpy |  | 0.03398 | ±1.4 % | 3951 |"),
        ("| 2258 | 100.0 | 57.2 |", "| 2258 | 100.0 | 57.3 |"),
        ("| 14000× |", "| 14100× |"),
        ("| 1.67<br>±1.0 % |", "| 1.68<br>±1.0 % |"),
        ("| 1000000 | 0.309 | 0.43 ±9.6 % |", "| 1000000 | 0.309 | 0.44 ±9.6 % |"),
        ("both global sides coalesced | 1.820 ±0.3 % |", "both global sides coalesced | 1.821 ±0.3 % |"),
        ("blocks of 16x16 | yes: 1.83×", "blocks of 16x16 | yes: 1.84×"),
        ("runs that drift | 0.8 % of 600 |", "runs that drift | 0.9 % of 600 |"),
    ],
)
def test_a_figure_of_a_table_that_is_changed_is_noticed(line: str, changed: str) -> None:
    text = figures.pages()
    assert line in text
    assert list(figures.wrong(text.replace(line, changed)))
