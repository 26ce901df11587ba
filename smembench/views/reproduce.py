"""The documents' figures with this device's beside them, and whether their claims hold here, as sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import ENGINES, Block
from smembench.model.text import number_of
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.reproduce.claim import Claim
from smembench.studies.reproduce.devices import devices as devices_of_run
from smembench.studies.reproduce.figures import ASSUMED, BLOCKS, FIGURES, SIZES, Document, devices_of, figure_of
from smembench.studies.reproduce.judge import CLAIMS, Holds, Judged, judge
from smembench.studies.reproduce.measures import Here, Missing, two_digits
from smembench.views.columns import milliseconds, number, times
from smembench.views.records import Record
from smembench.views.sections import Section, describe, table

_Line = tuple[Judged, Judged]
_Columns = dict[str, Callable[[_Line], str]]
_WIDE, _NARROW = 52, 36
"""Characters of a claim on its line, alone and beside the answers of a reference."""


def reproduction(
    run: Run, devices: Sequence[Here] | None = None, reference: Here | None = None, *, why: bool = False
) -> list[Section]:
    """The tables of figures, then the claims of each document; nothing for a run without the documents' cases.

    Args:
        run: what was measured.
        devices: those whose claims are judged; None for the run's own.
        reference: a device whose answers are shown beside those of a device that is no GPU.
        why: show each claim in full, with its place, interval and reason, instead of one line per claim.
    """
    tables = figures(run)
    if not tables:
        return []
    judged = devices_of_run(run) if devices is None else devices
    return [*tables, *(_claims(document, here, reference, why=why) for here in judged for document in CLAIMS)]


def figures(run: Run) -> list[Section]:
    """A section for each documented problem and each device of a run."""
    return [_figures(run, group) for group in documented(run.rows)]


def documented(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows that the documents have figures for, grouped by problem and device.

    These are the documents' kernels by the default compiler, at their sizes and element type, in the first of the
    blocks that are measured. The CPU's triple loop stands beside the kernels of every device.
    """
    groups: list[list[Row]] = []
    for problem in SIZES:
        of_problem = [row for row in rows if row.problem == problem and _is_documented(row, BLOCKS[problem][0])]
        baseline = PROBLEMS[problem].cpu_kernel
        devices = {row.device for row in of_problem if row.kernel != baseline} or {row.device for row in of_problem}
        groups += [
            [row for row in of_problem if row.device == device or row.kernel == baseline]
            for device in sorted(devices, key=lambda name: (name == "cpu", name))
        ]
    return groups


def _is_documented(row: Row, block: Block) -> bool:
    known = any((figure.problem, figure.kernel) == (row.problem, row.kernel) for figure in FIGURES)
    here = ({row.m, row.n, row.k or row.n}, row.dtype, row.cache, row.stride)
    at_size = here == ({SIZES[row.problem]}, "float32", "warm", None) and row.compiler in ENGINES
    return known and at_size and row.block in (None, block)


def _figures(run: Run, rows: Sequence[Row]) -> Section:
    problem = rows[0].problem
    baseline = PROBLEMS[problem].cpu_kernel or PROBLEMS[problem].copy_kernel
    assert baseline is not None

    def published(device: str) -> Callable[[Row], str]:
        return lambda row: _published(problem, row.kernel, baseline, device)

    def in_block(block: Block) -> Callable[[Row], str]:
        by_kernel = {
            (row.kernel, row.device): row for row in run.rows if row.problem == problem and _is_documented(row, block)
        }
        return lambda row: _here(by_kernel.get((row.kernel, row.device)))

    here = {f"here, {block}": in_block(block) for block in BLOCKS[problem]}
    ecc = {device.ecc for device in run.description.devices if device.name in {row.device for row in rows}} - {None}
    return table(
        describe(run.only(rows)),
        rows,
        {
            "kernel": lambda row: row.kernel,
            **{device: published(device) for device in devices_of(problem)},
            **{heading: text for heading, text in here.items() if any(text(row) for row in rows if row.block)},
        },
        words=("kernel",),
    ).below(
        sentence=f"{ASSUMED[problem]}{'; it is on here' if problem == 'transpose' and ecc == {True} else ''}.",
        notes=[f"{row.kernel}: {row.status}: {row.reason}" for row in rows if not row.ok],
    )


def _published(problem: str, kernel: str, baseline: str, device: str) -> str:
    figure, beside = figure_of(problem, kernel, device), figure_of(problem, baseline, device)
    if figure is None or beside is None:
        return ""
    if PROBLEMS[problem].cpu_kernel:
        return f"{figure.elapsed_ms:g} ms\n{times(beside.elapsed_ms / figure.elapsed_ms)} CPU"
    percent = 100 * beside.elapsed_ms / figure.elapsed_ms
    return f"{figure.elapsed_ms:g} ms\n{figure.gb_s:g} GB/s\n{percent:.0f} % of copy"


def _here(row: Row | None) -> str:
    if row is None or row.elapsed_ms is None:
        return row.status if row else ""
    if PROBLEMS[row.problem].cpu_kernel:
        more = ["" if row.speedup_vs_cpu is None else f"{times(row.speedup_vs_cpu)} CPU"]
    else:
        share = row.percent_of_copygmem
        more = [f"{number(row.effective_gb_s)} GB/s", "" if share is None else f"{share:.0f} % of copy"]
    return "\n".join(filter(None, (f"{milliseconds(row.elapsed_ms)} ms", *more)))


def records(devices: Sequence[Here], reference: Here | None = None) -> list[Record]:
    """Every claim on each device, and on the reference if none of them is a GPU."""
    gpus = any(here.is_gpu for here in devices)
    return [
        _record(here, document, one)
        for here in (devices if gpus or reference is None else [*devices, reference])
        for document, of_document in CLAIMS.items()
        for one in judge(here, of_document)
    ]


def _record(here: Here, document: Document, judged: Judged) -> Record:
    claim, result = judged.claim, judged.answer
    answer = None if isinstance(result, Missing) else result
    return {
        "device": _name(here),
        "document": document,
        "where": claim.place,
        "says": claim.says,
        "published": {device: value for device, value in claim.published.items() if device},
        "assumed": claim.assumed or None,
        "holds": judged.holds,
        "found": str(result) if isinstance(result, Missing) else result.text,
        "value": answer and answer.value,
        "low": answer and answer.low,
        "high": answer and answer.high,
        "why": claim.why,
    }


def _claims(document: Document, here: Here, reference: Here | None, *, why: bool) -> Section:
    """The claims of a document that have an answer on the device, or would have one on a GPU."""
    every = judge(here, CLAIMS[document])
    beside = judge(reference, CLAIMS[document]) if reference and not here.is_gpu else every
    lines = [
        (one, other)
        for one, other in zip(every, beside, strict=True)
        if one.answer is not Missing.NOT_IN_RUN or other.holds
    ]
    other = _name(reference) if reference and beside is not every else ""
    columns = _with_reasons(other) if why else _by_verdict([one.claim for one, _ in lines], other)
    notes = []
    if left_out := len(every) - len(lines):
        claims = "1 claim is" if left_out == 1 else f"{left_out} claims are"
        notes.append(f"{claims} about cases that are not in this run; smembench reproduce has them all")
    if not here.is_gpu and reference:
        notes.append(f"what needs a GPU is answered by the stored run {reference.run.id}, on {_name(reference)}")
    elif not here.is_gpu:
        notes.append("H200 answers for the GPU-only claims: results/reference/documents.md in the repository")
    return table(f"{_name(here)} · {document}", lines, columns, words=tuple(columns)).below(
        sentence=_sentence(every), notes=notes
    )


def _with_reasons(reference: str) -> _Columns:
    return {
        "where": lambda line: line[0].claim.place,
        "it says": lambda line: _says(line[0].claim),
        "here": lambda line: _answer(line[0]),
        **({reference: lambda line: _answer(line[1])} if reference else {}),
        "why": lambda line: line[0].claim.why,
    }


def _by_verdict(claims: Sequence[Claim], reference: str) -> _Columns:
    """A line per claim: the verdict, the value, and the claim, cut to the width of a terminal."""
    width = _NARROW if reference else _WIDE

    def says(line: _Line) -> str:
        claim = line[0].claim
        twins = [other for other in claims if other.says == claim.says and other is not claim]
        alike = {word for other in twins for word in other.assumed.split()}
        own = " ".join(word for word in claim.assumed.split() if word not in alike) if twins else ""
        return _cut(f"{claim.says}, {own}" if own else claim.says, width)

    return {
        "holds": lambda line: verdict(line[0]),
        "here": lambda line: _value(line[0]),
        **({reference: lambda line: f"{verdict(line[1])} {_value(line[1])}"} if reference else {}),
        "it says": says,
    }


def _cut(text: str, width: int) -> str:
    """Text of at most a width, without words from its middle."""
    if len(text) <= width:
        return text
    end = text[-(width // 3) :].partition(" ")[2]
    return f"{text[: width - len(end) - 2].rpartition(' ')[0]} … {end}"


def verdict(judged: Judged) -> str:
    """The answer to whether a claim holds; "" without one."""
    return str(judged.holds or "")


def _value(judged: Judged) -> str:
    return str(judged.answer) if isinstance(judged.answer, Missing) else judged.answer.text


def _name(here: Here) -> str:
    return here.info.model if here.info else here.device


def _says(claim: Claim) -> str:
    figures = ", ".join(f"{two_digits(value)}× {device}" for device, value in claim.published.items() if device)
    assumed = f"assumed: {claim.assumed}" if claim.assumed else ""
    return "\n".join(filter(None, (claim.says, figures, assumed)))


def _answer(judged: Judged) -> str:
    result = judged.answer
    return str(result) if isinstance(result, Missing) else f"{verdict(judged)}\n{result.text}\n{result.beside}"


_COUNTED = {
    Holds.YES: "hold",
    Holds.NO: "do not",
    Holds.NOT_ANY_MORE: "no longer do",
    Holds.MORE: "more than claimed",
    Holds.UNDECIDED: "undecided",
    None: "without an answer here",
}


def _sentence(every: Sequence[Judged]) -> str:
    """The number of claims per answer: ``15 claims: 9 hold, 2 do not, 4 without an answer here.``"""
    counts = Counter(one.holds for one in every)
    parts = (f"{counts[holds]} {words}" for holds, words in _COUNTED.items() if counts[holds])
    return f"{number_of(len(every), 'claim')}: {', '.join(parts)}."
