"""README and the pages it leads to, and what fills their tables: ``PYTHONPATH=.:.ci python -m pages``."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import documents_tables
import kernels_page
from nights import readme

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
KERNELS = ROOT / "smembench/kernels/README.md"
PAGES = (
    README,
    ROOT / "configs/README.md",
    ROOT / "configs/nightly/README.md",
    ROOT / "results/reference/README.md",
    ROOT / "smembench/README.md",
    ROOT / "smembench/explain/README.md",
    KERNELS,
    ROOT / "smembench/run/README.md",
    ROOT / "smembench/store/README.md",
    ROOT / "smembench/studies/fleet/README.md",
)
FILLED = re.compile(
    r"^<!-- (smembench (?:show|probe) [^\n]*|claims|nights|ladder \S+ \S+ \S+ \S+) -->\n(.*?)^<!-- end -->$",
    flags=re.DOTALL | re.MULTILINE,
)
"""A table that is filled: what it is of, such as a command or a ladder's problem, run, element type and size."""


def table(of: str) -> str:
    """The table as it is now."""
    match shlex.split(of):
        case ["claims"]:
            return documents_tables.table()
        case ["nights"]:
            return readme.table()
        case ["ladder", problem, run, dtype, size]:
            return kernels_page.table(problem, run, dtype, size)
        case [_, *arguments]:
            command = [sys.executable, "-m", "smembench", *arguments]
            shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
            return shown.strip() + "\n"
        case _:
            raise ValueError(of)


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        filled = FILLED.sub(lambda result: f"<!-- {result[1]} -->\n{table(result[1])}<!-- end -->", text)
        page.write_text(filled, encoding="utf-8")
    documents_tables.ALL.write_text(documents_tables.everything(), encoding="utf-8")
