"""The tables of ``smembench compilers``: a kernel and its ports, one below the other, case by case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.groups import grouped
from smembench.store.run import Run
from smembench.studies.compilers import Build, PortedCase, of_stored
from smembench.studies.difference import Ratio
from smembench.toolchains.registry import compilers as toolchains
from smembench.views.columns import milliseconds, ratio_text
from smembench.views.records import Record
from smembench.views.sections import Section, block, device_names, libraries, table


@dataclass(frozen=True, slots=True)
class _Line:
    """A case by its compiler; ``ratio`` is None for the default and where a time is missing."""

    case: Case
    build: Build
    ratio: Ratio | None = None


def of_run(run: Run) -> list[Section]:
    """A section for each problem, size and dtype of a run.

    Instructions are counted in code compiled here for its device, if the compilers are the run's.
    """
    pairs, others = of_stored(run)
    sections = compilers(pairs, device_names(run), run.description.versions)
    if sections and others:
        left_out = f"Instructions are left out: the run's code is by {', '.join(others)}."
        sections[-1] = replace(sections[-1], sentence=f"{sections[-1].sentence} {left_out}".strip())
    return sections


def compilers(pairs: Sequence[PortedCase], where: str, versions: Mapping[str, str]) -> list[Section]:
    """A section for each problem, size and dtype: times, their ratios, and the resources of each compiler's code."""

    def subject(pair: PortedCase) -> str:
        problem = PROBLEMS[pair.case.problem]
        return f"{problem.texts.title} {problem.texts.size(pair.case)} {pair.case.dtype}"

    known = libraries(versions, {name for pair in pairs for name in (pair.case.compiler, pair.compiler)})
    heading = f"{where} · {known}" if known else where
    return [_section(f"{heading} · {title}", group) for title, group in grouped(pairs, subject).items()]


def builds(pairs: Sequence[PortedCase]) -> list[Record]:
    """The lines of the tables, for programs."""
    return [{"case_id": line.case.id, **asdict(line.build), **_ratio(line.ratio)} for line in _lines(pairs)]


def _ratio(ratio: Ratio | None) -> Record:
    """A ratio and its interval, for programs."""
    return {"ratio": ratio and ratio.value, "ratio_uncertainty": ratio and ratio.within}


def _section(heading: str, pairs: Sequence[PortedCase]) -> Section:
    lines = list(_lines(pairs))
    columns: dict[str, Callable[[_Line], str]] = {
        "kernel": lambda line: line.case.kernel,
        "block": lambda line: block(line.case),
        "by": lambda line: line.case.compiler,
    }
    if any(line.build.elapsed_ms is not None for line in lines):
        columns["elapsed\nms"] = lambda line: milliseconds(line.build.elapsed_ms)
        columns[f"{_language(pairs[0].case.compiler)}\nover it"] = lambda line: (
            ratio_text(line.ratio) if line.ratio else ""
        )
    columns["regis-\nters"] = lambda line: _text(line.build.registers)
    if any(line.build.local_bytes for line in lines):
        columns["local\nbytes"] = lambda line: _text(line.build.local_bytes)
    columns |= {
        "shared\nbytes": lambda line: _shared_bytes(line.case),
        "instruc-\ntions": lambda line: _text(line.build.instructions),
    }
    by_port = grouped(pairs, lambda pair: pair.compiler).values()
    sentences = (text for group in by_port for text in (_sentence(group), _missing(group)))
    sentence = " ".join(filter(None, sentences))
    section = table(heading, lines, columns, words=("kernel", "block", "by"), wide=("shared\nbytes",))
    return section.below(sentence=sentence)


def _lines(pairs: Sequence[PortedCase]) -> Iterator[_Line]:
    """Each kernel, then those of its ports that have figures."""
    for case, group in grouped(pairs, lambda pair: pair.case).items():
        yield _Line(case, group[0].ours)
        there = (pair for pair in group if not pair.missing)
        yield from (_Line(replace(case, compiler=pair.compiler), pair.port, pair.ratio) for pair in there)


def _shared_bytes(case: Case) -> str:
    """Shared memory of the kernel, which its ports have too; "" for none and for one that is no longer declared."""
    kernel = registry.find(case.problem, case.kernel, case.kind)
    return str(kernel.shared_bytes(case) or "") if kernel else ""


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _sentence(pairs: Sequence[PortedCase]) -> str:
    """The range of the ratios, and what in the code may explain the one farthest from 1."""
    timed = sorted(((pair.ratio.value, pair) for pair in pairs if pair.ratio is not None), key=lambda item: item[0])
    if not timed:
        return ""
    (lowest, low), (highest, high) = timed[0], timed[-1]
    ours, port = _language(low.case.compiler), _language(low.compiler)
    ratios = " to ".join(dict.fromkeys(ratio_text(pair.ratio) for pair in (low, high) if pair.ratio))
    speed = f"{ours}'s kernels run at {ratios} of the speed of {port}"
    if lowest * highest <= 1:
        end = f"lowest for {low.case.kernel} {low.case.block}{_reason(low.ours, low.port, lowest, ours)}"
    else:
        end = f"highest for {high.case.kernel} {high.case.block}{_reason(high.port, high.ours, 1 / highest, port)}"
    return f"{speed}; {end}."


def _missing(pairs: Sequence[PortedCase]) -> str:
    """The ports without figures, and the reasons."""
    reasons = dict.fromkeys((pair.case.kernel, pair.missing) for pair in pairs if pair.missing)
    text = "; ".join(f"{kernel}: {reason}" for kernel, reason in reasons)
    return f"Not by {_language(pairs[0].compiler)}: {text}." if reasons else ""


def _reason(slower: Build, faster: Build, ratio: float, who: str) -> str:
    """The resources of which the slower code takes more, or the lower bound of its main loop."""
    if ratio >= 1:
        return ""
    ours, theirs = slower.loop_bound, faster.loop_bound
    if ours is not None and theirs is not None and ours < theirs:
        bounds = f"at most {100 * ours:.0f} % of the arithmetic peak instead of {100 * theirs:.0f}"
        return f", where {who} has a main loop that can reach {bounds}"
    words = {"registers": "registers", "local_bytes": "local memory", "instructions": "instructions"}
    counts = {word: (getattr(slower, name), getattr(faster, name)) for name, word in words.items()}
    more = [word for word, (ours, theirs) in counts.items() if None not in (ours, theirs) and ours > theirs]
    return f", where {who} takes more {' and '.join(more)}" if more else ""


def _language(compiler: str) -> str:
    return next(toolchain.language for toolchain in toolchains() if toolchain.name == compiler)
