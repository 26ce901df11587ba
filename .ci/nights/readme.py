"""What nights see, for README and results/reference/README.md: from the study's counts."""

from __future__ import annotations

import csv
from pathlib import Path

ROOT = Path(__file__).parents[2]
COUNTS = ROOT / "results/reference/nights.csv"
FALSE = "last:7: false nights"
_MODELS = {
    "N0": "runs minutes apart",
    "N4": "normal rounds, nothing between runs",
    "N1p": "runs nights apart",
    "N1": "runs nights apart, one case in twenty with two modes by round",
    "N1m": "runs nights apart, one case in thirty with two modes by run",
    "N3": "runs that drift, with two modes by round",
    "AR(1)": "runs that drift",
    "season": "a season of ±1 % over 60 nights",
    "t3": "Student's t between runs",
    "t3 and rounds": "Student's t between runs and rounds",
    "levels 0.05": "one kernel 8 % slower on one night in twenty, by chance",
    "levels 0.2": "one kernel 8 % slower on one night in five, by chance",
    "levels 0.5": "one kernel 8 % slower on every other night, by chance",
    "limits N0": "config limits, runs minutes apart",
    "limits N1p": "config limits, runs nights apart",
    "limits N1m": "config limits, one case in thirty with two modes by run",
}
_LINES = {
    "exit 3 though nothing changed, rounds 2 % noisier than usual": "rounds 2% noisier: false nights",
    "2 % slower, 30 µs to 30 ms, detected on one of the first three nights": "held 2%: one of nights 1 to 3",
    "3 % slower, 30 µs to 30 ms, detected on the first night": "held 3%: night 01",
    "the same on the 14th": "held 3%: night 14",
    "5 % slower, under 10 µs, detected on the first night": "5% in under 10 µs after 7 nights",
    "10 % slower, under 10 µs, detected on the first night": "10% in under 10 µs after 7 nights",
    "all cases 1.5 % slower, exit 3 on the first night": "all 1.5% slower: night 01",
    "the same on the 14th night": "all 1.5% slower: night 14",
}


def counts() -> dict[tuple[str, str], tuple[int, int]]:
    """By model and question: on how many nights the answer was yes, and of how many."""
    with COUNTS.open(encoding="utf-8") as stream:
        return {(row["model"], row["asked"]): (int(row["yes"]), int(row["of"])) for row in csv.DictReader(stream)}


def false_nights() -> str:
    """The share of false nights of runs that are nights apart."""
    return _share(*counts()["N1p", FALSE])


def worst() -> str:
    """The share of false nights under the worst model, and what it is."""
    counted = counts()
    model = max(_MODELS, key=lambda name: counted[name, FALSE][0] / counted[name, FALSE][1])
    return f"{_share(*counted[model, FALSE])} under the worst model ({_MODELS[model]})"


def table() -> str:
    """False nights, a line per model; then what is detected, a line per question."""
    counted = counts()
    lines = ["| what nights differ by | exit 3 though nothing changed |", "| :--- | ---: |"]
    lines += [f"| {name}: {what} | {_of(counted[name, FALSE])} |" for name, what in _MODELS.items()]
    for what in ("before", "once each level was seen on three nights"):
        both = [counted.get((name, f"{FALSE}, {what}"), (0, 0)) for name in _MODELS]
        total = sum(yes for yes, _ in both), sum(of for _, of in both)
        lines.append(f"| the three with a kernel of two levels, {what} | {_of(total)} |")
    lines += ["", "| share of nights | N0 | N1p |", "| :--- | ---: | ---: |"]
    for what, asked in _LINES.items():
        lines.append(f"| {what} | {' | '.join(_of(counted[name, asked]) for name in ('N0', 'N1p'))} |")
    return "\n".join(lines) + "\n"


def _of(counted: tuple[int, int]) -> str:
    return f"{_share(*counted)} of {counted[1]}"


def _share(yes: int, of: int) -> str:
    return f"{100 * yes / of:.1f} %"
