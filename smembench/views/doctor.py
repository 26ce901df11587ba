"""``smembench doctor``: its findings line by line, and the table of ``--timing``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from smembench.launches.dimensions import as_text
from smembench.model.case import Case
from smembench.model.device import DeviceInfo
from smembench.studies.doctor.installation import Check
from smembench.studies.doctor.timing import ALLOWED_PERCENT, ALLOWED_US, METRIC, READINGS, Agreement
from smembench.views.records import Record
from smembench.views.sections import Section, libraries, table


def lines(checks: Sequence[Check]) -> list[str]:
    """A line for each thing that was looked at, and one for the command that fixes it."""
    output = []
    for check in checks:
        output.append(f"{check.mark:<4} {check.what}: {check.state}")
        if not check.ok:
            output.append(f"       fix: {check.fix}")
    return output


def size_of(case: Case) -> str:
    """The size, of a launch of the user's the grid."""
    return as_text(case.launch.grid) if case.launch else case.size


def timing_records(agreements: Sequence[Agreement]) -> list[Record]:
    """Both clocks and their difference, for programs."""
    return [
        {
            "kernel": item.case.kernel if item.case.launch else f"{item.case.problem} {item.case.kernel}",
            "size": size_of(item.case),
            "block": str(item.case.block or ""),
            "cache": item.case.cache,
            "smembench_us": round(item.ours_us, 4),
            "low_us": round(min(item.ours), 4),
            "high_us": round(max(item.ours), 4),
            "ncu_us": _rounded(item.ncu_us, 4),
            "ncu_low_us": _rounded(min(item.theirs, default=None), 4),
            "ncu_high_us": _rounded(max(item.theirs, default=None), 4),
            "cupti_us": _rounded(item.cupti_us, 4),
            "difference_us": _rounded(item.difference_us, 4),
            "difference_percent": _rounded(item.percent, 3),
            "agrees": item.agrees,
        }
        for item in agreements
    ]


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def section(agreements: Sequence[Agreement], device: DeviceInfo, versions: Mapping[str, str]) -> Section:
    """The clocks side by side, and the difference from ncu's; columns of a clock that was not read are left out."""
    columns: dict[str, Callable[[Agreement], str]] = {
        "kernel": lambda item: item.case.kernel,
        "size": lambda item: size_of(item.case),
        "cache": lambda item: item.case.cache,
        "smembench\nµs": lambda item: f"{item.ours_us:.2f}",
        "ncu\nµs": lambda item: _text(item.ncu_us, ".2f"),
        "CUPTI\nµs": lambda item: _text(item.cupti_us, ".2f"),
        "difference\nµs": lambda item: _text(item.difference_us, "+.2f"),
        "difference\n%": lambda item: _text(item.percent, "+.1f"),
        "agrees": lambda item: {True: "yes", False: "NO", None: ""}[item.agrees],
    }
    shown = {name: text for name, text in columns.items() if any(map(text, agreements))}
    agreed = f"{sum(item.agrees is True for item in agreements)} of {len(agreements)}"
    within = f"{agreed} are within {ALLOWED_US:g} µs or {ALLOWED_PERCENT:g} % of {READINGS} readings of {METRIC}."
    texts = [within] if "agrees" in shown else []
    longer = [item.ours_us - item.cupti_us for item in agreements if item.cupti_us is not None]
    if longer:
        texts.append(f"They are {min(longer):+.2f} to {max(longer):+.2f} µs beside CUPTI's kernel records.")
    return table(
        f"{device.model} · driver {device.driver} · {libraries(versions)}",
        agreements,
        shown,
        words=("kernel", "cache", "agrees"),
    ).below(sentence=" ".join(texts))


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
