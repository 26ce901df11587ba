"""The tables of ``smembench compilers``: Numba beside NVRTC, case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.run.environment import git_revision, versions
from smembench.store.schema import Row
from smembench.studies.compilers import Pair, Side, measured
from smembench.toolchains.machine_code import MachineCode, machine_code
from smembench.views.columns import Column, milliseconds, number
from smembench.views.sections import Section, device_names

_BOTH = "numba / nvrtc"
_COMPILERS = ("numba", "numba-cuda", "nvjitlink", "nvrtc")
_MAKERS = ("smembench", *_COMPILERS)


def of_run(rows: Sequence[Row], run: Mapping[str, Any]) -> list[Section]:
    """A section for each problem, size and dtype of a run's pairs.

    Instructions are those that the compilers here make for its device's capability, where they are the run's.
    """
    capabilities = {device["name"]: device.get("compute_capability") for device in run.get("devices", ())}
    others = _other_makers(run)

    def code(case: Case) -> MachineCode | None:
        return None if others else machine_code(case, capabilities.get(case.device))

    sections = compilers(measured(rows, code), _with_versions(device_names(rows, run), run))
    if sections and others:
        left_out = f"Instructions are left out: the run's code is by {', '.join(others)}."
        sections[-1] = replace(sections[-1], sentence=f"{sections[-1].sentence} {left_out}".strip())
    return sections


def _other_makers(run: Mapping[str, Any]) -> list[str]:
    """What made a run's code and is another one here, or none."""
    there, here = run.get("versions", {}), versions(cuda=True)
    found = [f"{name} {there[name]}" for name in _MAKERS if name in there and there[name] != here.get(name)]
    made, is_here = ((state or {}).get("revision", "") for state in (run.get("git"), git_revision()))
    if made and is_here and made != is_here:
        found.append(f"revision {made[:7]}")
    return found


def of_code(pairs: Sequence[Pair], capability: str, makers: Mapping[str, str]) -> list[Section]:
    """The same of pairs that were compiled and not measured, by compilers of these versions."""
    return compilers(pairs, _with_versions(f"compute capability {capability}", {"versions": makers}))


def compilers(pairs: Sequence[Pair], where: str) -> list[Section]:
    """A section for each problem, size and dtype: both times and their ratio, and what both codes take."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        problem = PROBLEMS[pair.case.problem]
        groups.setdefault(f"{problem.title} {problem.size(pair.case)} {pair.case.dtype}", []).append(pair)
    return [_section(f"{where} · {subject}", group) for subject, group in groups.items()]


def _section(heading: str, pairs: Sequence[Pair]) -> Section:
    timed = any(pair.numba.elapsed_ms is not None for pair in pairs)
    headings = ["kernel", "block"]
    headings += [f"elapsed ms\n{_BOTH}", "over\nCUDA C"] if timed else []
    headings += [f"registers\n{_BOTH}", f"local bytes\n{_BOTH}", "shared\nbytes", f"instructions\n{_BOTH}"]
    return Section(
        heading=heading,
        columns=[Column(name, numeric=name not in ("kernel", "block")) for name in headings],
        cells=[_line(pair, timed=timed) for pair in pairs],
        sentence=" ".join(filter(None, (_sentence(pairs), _missing(pairs)))),
    )


def _line(pair: Pair, *, timed: bool) -> list[str]:
    case = pair.case
    line = [case.kernel, f"{case.block} +{case.pad}" if case.pad else str(case.block or "")]
    if timed:
        times = (side.elapsed_ms for side in (pair.numba, pair.nvrtc))
        line.append(_both(*(None if time is None else milliseconds(time) for time in times)))
        line.append("" if pair.ratio is None else f"{pair.ratio:.3f}")
    shared = registry.kernel_of(case).shared_bytes(case)
    return [*line, _of(pair, "registers"), _of(pair, "local_bytes"), str(shared or ""), _of(pair, "instructions")]


def _of(pair: Pair, name: str) -> str:
    return _both(getattr(pair.numba, name), getattr(pair.nvrtc, name))


def _both(numba: object, nvrtc: object) -> str:
    if numba is None and nvrtc is None:
        return ""
    return f"{'-' if numba is None else numba} / {'-' if nvrtc is None else nvrtc}"


def _sentence(pairs: Sequence[Pair]) -> str:
    """The range of the ratios, and what of the code may explain the one that is farthest from 1."""
    timed = sorted(((pair.ratio, pair) for pair in pairs if pair.ratio is not None), key=lambda item: item[0])
    if not timed:
        return ""
    (lowest, low), (highest, high) = timed[0], timed[-1]
    said = f"Numba's kernels run at {number(lowest)} to {number(highest)} of the speed of CUDA C"
    if lowest * highest <= 1:
        end = f"lowest for {low.case.kernel} {low.case.block}{_reason(low.numba, low.nvrtc, lowest, 'Numba')}"
    else:
        end = (
            f"highest for {high.case.kernel} {high.case.block}{_reason(high.nvrtc, high.numba, 1 / highest, 'CUDA C')}"
        )
    return f"{said}; {end}."


def _missing(pairs: Sequence[Pair]) -> str:
    """Which ports there are no figures of, and why."""
    reasons = dict.fromkeys((pair.case.kernel, pair.missing) for pair in pairs if pair.missing)
    return f"Not by CUDA C: {'; '.join(f'{kernel}: {reason}' for kernel, reason in reasons)}." if reasons else ""


def _reason(slower: Side, faster: Side, ratio: float, who: str) -> str:
    """What the slower's code has more of, and what its main loop can reach where that is less."""
    if ratio >= 1:
        return ""
    ours, theirs = slower.loop_bound, faster.loop_bound
    if ours is not None and theirs is not None and ours < theirs:
        bounds = f"at most {100 * ours:.0f} % of the arithmetic peak instead of {100 * theirs:.0f}"
        return f", where {who} has a main loop that can reach {bounds}"
    words = {"registers": "registers", "local_bytes": "local memory", "instructions": "instructions"}
    more = [word for name, word in words.items() if _more(slower, faster, name)]
    return f", where {who} takes more {' and '.join(more)}" if more else ""


def _more(slower: Side, faster: Side, name: str) -> bool:
    ours, theirs = getattr(slower, name), getattr(faster, name)
    return ours is not None and theirs is not None and ours > theirs


def _with_versions(where: str, run: Mapping[str, Any]) -> str:
    recorded = run.get("versions", {})
    return " · ".join([where, *(f"{name} {recorded[name]}" for name in _COMPILERS if name in recorded)])
