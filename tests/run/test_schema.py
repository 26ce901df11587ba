"""The JSON schema of configs, for editors: it takes what the program takes, and finds misspelled names."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from conftest import Program
from smembench.run.config import Config

jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
ROOT = Path(__file__).parents[2]
SCHEMA = jsonschema.Draft202012Validator(Config.model_json_schema())
TRANSPOSE = '[[sweep]]\nproblem = "transpose"\n'


def faults(text: str) -> list[Any]:
    return list(SCHEMA.iter_errors(tomllib.loads(text)))


@pytest.mark.parametrize("path", [*ROOT.glob("configs/*.toml"), *ROOT.glob("tests/gpu/*.toml")], ids=lambda p: p.stem)
def test_every_config_keeps_to_the_schema(path: Path) -> None:
    assert faults(path.read_text()) == []


def test_the_schema_beside_the_configs_is_the_one_that_is_printed(program: Program) -> None:
    assert json.loads(program("list", "--schema").stdout) == json.loads((ROOT / "configs/schema.json").read_text())


@pytest.mark.parametrize(
    "line", ['n = "1k:8k:*2"', "n = 8", "n = [8, '1k']", 'block = "32x8,16x16"', 'kernel = "copyGmem"', "pad = true"]
)
def test_text_forms_are_taken_as_the_program_takes_them(line: str) -> None:
    Config.model_validate(tomllib.loads(TRANSPOSE + line))
    assert faults(TRANSPOSE + line) == []


@pytest.mark.parametrize("text", ["", TRANSPOSE + "m_side = 8", TRANSPOSE + "n = 1.5", "rouns = 3\n" + TRANSPOSE])
def test_what_the_program_refuses_is_a_fault(text: str) -> None:
    assert faults(text)


def test_a_problem_is_one_that_there_is() -> None:
    assert faults('[[sweep]]\nproblem = "transposes"\n')
    assert not faults(
        'max_seconds = "2m"\n[[sweep]]\nkernel = "mine.cu:scale"\narg = ["float32[n]", 8]\nsizes.n = "1k:8k:*2"'
    )
