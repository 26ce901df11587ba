"""README and the files it quotes: every table in it is what the command above it prints."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"<!-- smembench (show .*?) -->\n(.*?)<!-- end -->", README, flags=re.DOTALL)


@pytest.mark.parametrize(("command", "quoted"), QUOTED, ids=[command for command, _ in QUOTED])
def test_a_quoted_table_is_what_its_command_prints(command: str, quoted: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "smembench", *shlex.split(command)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        check=True,
    )
    assert quoted.strip() == shown.stdout.strip()


def test_there_is_a_quoted_table() -> None:
    assert QUOTED


def test_the_timing_sentence_counts_the_table() -> None:
    with (ROOT / "results/reference/h200-timing.csv").open(encoding="utf-8") as stream:
        agrees = [row["agrees"] for row in csv.DictReader(stream)]
    assert f"<!-- timing -->{agrees.count('true')} of {len(agrees)}<!-- end -->" in README


def test_the_explain_sentence_counts_the_table() -> None:
    with (ROOT / "results/reference/h200-explain.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    agrees = [row["agrees"] for row in rows if row["agrees"]]
    assert f"<!-- explain -->{agrees.count('true')} of {len(agrees)}<!-- end -->" in README
    assert f"over {len({row['case_id'] for row in rows})} combinations" in README


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


@pytest.mark.parametrize("line", re.findall(r"^smembench .*$", README, flags=re.MULTILINE))
def test_examples_are_commands_that_exist(line: str) -> None:
    words = shlex.split(line, comments=True)
    helped = subprocess.run(
        [sys.executable, "-m", "smembench", words[1], "--help"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"COLUMNS": "200", "PATH": ""},
        cwd=ROOT,
        check=True,
    )
    for option in (word for word in words if word.startswith("--")):
        assert option in helped.stdout
