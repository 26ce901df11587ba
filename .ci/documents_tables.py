"""The documents' claims in the newest stored run: those in README, and all of results/reference/documents.md."""

from __future__ import annotations

from pathlib import Path

from smembench.store.load import load
from smembench.studies.reproduce.devices import reference
from smembench.studies.reproduce.figures import Document
from smembench.studies.reproduce.judge import CLAIMS, Judged, judge
from smembench.studies.reproduce.measures import Missing
from smembench.views.markdown import markdown
from smembench.views.reproduce import reproduction, verdict

ROOT = Path(__file__).parents[1]
ALL = ROOT / "results/reference/documents.md"
_SHOWN = {
    Document.SLIDES: (
        "shared memory's latency",
        "shared memory's bandwidth",
        "addresses in one bank",
        "transposeSmem is faster",
        "transposeSmemPad is faster",
        "constant memory is for",
    ),
    Document.GUIDE: ("page-locked memory is set against pageable memory; host",),
    Document.BLOG: (
        "shared memory is typically 48KB",
        "naive on the GPU is 240.19x",
        "shared memory gives about",
        "the example has a 2x",
    ),
}
"""The claims that README shows, by how they begin."""
_NAMES = {Document.SLIDES: "slides", Document.GUIDE: "guide", Document.BLOG: "blog"}


def table() -> str:
    """A line per claim that README shows."""
    here = reference()
    assert here is not None
    lines = ["| | claim | on the H200 |", "| :--- | :--- | :--- |"]
    for document, shown in _SHOWN.items():
        judged = judge(here, CLAIMS[document])
        chosen = [one for start in shown for one in judged if one.claim.says.startswith(start)]
        lines += [f"| {_NAMES[document]} | {_says(one)} | {_answer(one)} |" for one in chosen]
    return "\n".join(lines) + "\n"


def _says(judged: Judged) -> str:
    claim = judged.claim
    figures = ", ".join(f"{value:.2f}× {device}" for device, value in claim.published.items() if "Tesla" in device)
    return "; ".join(filter(None, (claim.says, figures, claim.assumed and f"assumed: {claim.assumed}")))


def _answer(judged: Judged) -> str:
    assert not isinstance(judged.answer, Missing), judged.claim
    return f"{verdict(judged)}: {judged.answer.text} ({', '.join(judged.answer.beside.splitlines())})"


def everything() -> str:
    """The documents' tables and all claims."""
    here = reference()
    assert here is not None
    assert here.run.path is not None
    shown = here.run.path.relative_to(ROOT)
    cut_off = "" if here.run.complete else " The run was cut off in its last round, so intervals of copies are wide."
    return (
        "# The documents' claims, and an H200's answers\n\n"
        f"Made by `smembench show {shown} --documents --why --markdown`, with the latencies of `smembench probe` in\n"
        f"`{shown}/probe.json`.{cut_off}\n\n"
        f"{markdown(reproduction(load(here.run.path), why=True))}"
    )
