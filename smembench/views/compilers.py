"""The tables of ``smembench compilers``: a kernel beside its port, case by case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.store.run import Run
from smembench.studies.compilers import Build, PortedCase, of_stored
from smembench.toolchains.registry import compilers as toolchains
from smembench.toolchains.registry import names
from smembench.views.columns import milliseconds, number
from smembench.views.sections import Section, block, device_names, grouped, libraries, table


def of_run(run: Run) -> list[Section]:
    """A section for each problem, size, dtype and port of a run.

    Instructions are counted in code compiled here for its device, if the compilers are the run's.
    """
    pairs, others = of_stored(run)
    sections = compilers(pairs, device_names(run), run.description.versions)
    if sections and others:
        left_out = f"Instructions are left out: the run's code is by {', '.join(others)}."
        sections[-1] = replace(sections[-1], sentence=f"{sections[-1].sentence} {left_out}".strip())
    return sections


def compilers(pairs: Sequence[PortedCase], where: str, versions: Mapping[str, str]) -> list[Section]:
    """A section for each problem, size, dtype and port: both times, their ratio, and the resources of both codes."""

    def subject(pair: PortedCase) -> tuple[str, str]:
        problem = PROBLEMS[pair.case.problem]
        return f"{problem.title} {problem.size(pair.case)} {pair.case.dtype}", pair.compiler

    known = libraries(versions, names())
    heading = f"{where} · {known}" if known else where
    return [_section(f"{heading} · {said}", group) for (said, _), group in grouped(pairs, subject).items()]


def _section(heading: str, pairs: Sequence[PortedCase]) -> Section:
    both, language = f"{pairs[0].case.compiler} / {pairs[0].compiler}", _language(pairs[0].compiler)
    columns: dict[str, Callable[[PortedCase], str]] = {
        "kernel": lambda pair: pair.case.kernel,
        "block": lambda pair: block(pair.case),
    }
    if any(pair.ours.elapsed_ms is not None for pair in pairs):
        columns[f"elapsed ms\n{both}"] = lambda pair: _both(
            *(milliseconds(side.elapsed_ms) or None for side in (pair.ours, pair.port))
        )
        columns[f"over\n{language}"] = lambda pair: "" if pair.ratio is None else f"{pair.ratio:.3f}"
    columns |= {
        f"registers\n{both}": lambda pair: _both(pair.ours.registers, pair.port.registers),
        f"local bytes\n{both}": lambda pair: _both(pair.ours.local_bytes, pair.port.local_bytes),
        "shared\nbytes": lambda pair: str(registry.kernel_of(pair.case).shared_bytes(pair.case) or ""),
        f"instructions\n{both}": lambda pair: _both(pair.ours.instructions, pair.port.instructions),
    }
    sentence = " ".join(filter(None, (_sentence(pairs), _missing(pairs))))
    return table(heading, pairs, columns, words=("kernel", "block"), sentence=sentence)


def _both(ours: object, port: object) -> str:
    if ours is None and port is None:
        return ""
    return f"{'-' if ours is None else ours} / {'-' if port is None else port}"


def _sentence(pairs: Sequence[PortedCase]) -> str:
    """The range of the ratios, and what in the code may explain the one farthest from 1."""
    timed = sorted(((pair.ratio, pair) for pair in pairs if pair.ratio is not None), key=lambda item: item[0])
    if not timed:
        return ""
    (lowest, low), (highest, high) = timed[0], timed[-1]
    ours, port = _language(low.case.compiler), _language(low.compiler)
    said = f"{ours}'s kernels run at {number(lowest)} to {number(highest)} of the speed of {port}"
    if lowest * highest <= 1:
        end = f"lowest for {low.case.kernel} {low.case.block}{_reason(low.ours, low.port, lowest, ours)}"
    else:
        end = f"highest for {high.case.kernel} {high.case.block}{_reason(high.port, high.ours, 1 / highest, port)}"
    return f"{said}; {end}."


def _missing(pairs: Sequence[PortedCase]) -> str:
    """Which ports have no figures, and why."""
    reasons = dict.fromkeys((pair.case.kernel, pair.missing) for pair in pairs if pair.missing)
    said = "; ".join(f"{kernel}: {reason}" for kernel, reason in reasons)
    return f"Not by {_language(pairs[0].compiler)}: {said}." if reasons else ""


def _reason(slower: Build, faster: Build, ratio: float, who: str) -> str:
    """What the slower code takes more of, or the lower bound of its main loop."""
    if ratio >= 1:
        return ""
    ours, theirs = slower.loop_bound, faster.loop_bound
    if ours is not None and theirs is not None and ours < theirs:
        bounds = f"at most {100 * ours:.0f} % of the arithmetic peak instead of {100 * theirs:.0f}"
        return f", where {who} has a main loop that can reach {bounds}"
    words = {"registers": "registers", "local_bytes": "local memory", "instructions": "instructions"}
    more = [word for name, word in words.items() if _more(slower, faster, name)]
    return f", where {who} takes more {' and '.join(more)}" if more else ""


def _more(slower: Build, faster: Build, name: str) -> bool:
    ours, theirs = getattr(slower, name), getattr(faster, name)
    return ours is not None and theirs is not None and ours > theirs


def _language(compiler: str) -> str:
    return next(toolchain.language for toolchain in toolchains() if toolchain.name == compiler)
