"""What nights see, for configs/nightly/README.md: from the study's counts."""

from __future__ import annotations

import csv
from pathlib import Path

ROOT = Path(__file__).parents[2]
COUNTS = ROOT / "results/reference/nights.csv"
_MODELS = {
    "N0": "minutes apart",
    "N1p": "nights apart",
    "N1": "and cases with two modes",
    "N1m": "and cases with a mode per run",
    "N3": "and runs that drift",
}
_LINES = {
    "exit 3 though nothing changed": "last:7: false nights",
    "the same, with rounds 2 % noisier than usual": "rounds 2% noisier: false nights",
    "2 % slower, 30 to 300 µs, detected on the first night": "2% in 30 to 300 µs after 7 nights",
    "3 % slower, 30 to 300 µs, detected on the first night": "3% in 30 to 300 µs after 7 nights",
    "5 % slower, under 10 µs, detected on the first night": "5% in under 10 µs after 7 nights",
    "10 % slower, under 10 µs, detected on the first night": "10% in under 10 µs after 7 nights",
    "5 % slower, over 30 µs, detected on a night from the 4th to the 14th": "held 5% nights 4 to 14",
    "all cases 2 % slower, exit 3 on the first night": "all 2% slower night 1",
    "all cases 2 % slower, exit 3 on a night from the 4th to the 14th": "all 2% slower nights 4 to 14",
}


def counts() -> dict[tuple[str, str], tuple[int, int]]:
    """By model and question: on how many nights the answer was yes, and of how many."""
    with COUNTS.open(encoding="utf-8") as stream:
        return {(row["model"], row["asked"]): (int(row["yes"]), int(row["of"])) for row in csv.DictReader(stream)}


def table() -> str:
    """A line per question, a column per model."""
    counted = counts()
    headings = " | ".join(f"{model}: {said}" for model, said in _MODELS.items())
    lines = [f"| share of nights | {headings} |", f"| :--- |{' ---: |' * len(_MODELS)}"]
    for said, asked in _LINES.items():
        found = [counted.get((name, asked), (0, 0)) for name in _MODELS]
        cells = [f"{100 * yes / of:.1f} % of {of}" if of else "" for yes, of in found]
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
