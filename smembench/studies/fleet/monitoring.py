"""A fleet for monitoring and drain scripts: a line of JSON per device, and metrics for node_exporter."""

from __future__ import annotations

from collections.abc import Iterator

from smembench.model.text import json_text
from smembench.studies.fleet.members import Member
from smembench.studies.fleet.verdict import Verdict
from smembench.studies.nightly.monitoring import Samples, exposition

_HELP = {
    "smembench_fleet_device_slow": "1 for a device that is slower than the others of its model or than itself before, "
    "else 0.",
    "smembench_fleet_device_ok": "1 for a device with a figure for every case, 0 for one that failed or was not "
    "measured.",
    "smembench_fleet_distance_ratio": "How much slower than the median of its model a device is; 0.03 is 3 %.",
    "smembench_fleet_devices": "Devices of the fleet.",
    "smembench_fleet_slow_devices": "Devices that are slow.",
    "smembench_fleet_exit_code": "0 all ok, 3 a device is slow, 1 one failed, 5 nothing to compare one with.",
}
"""The gauges of a fleet, each with its help."""


def json_lines(verdict: Verdict) -> str:
    """A line of JSON per device: which it is, whether it is slow, in what and how far, what was seen, what failed.

    Distances are fractions: 0.03 is 3 % slower.
    """
    return "".join(f"{json_text(line)}\n" for line in _lines(verdict))


def _lines(verdict: Verdict) -> Iterator[dict[str, object]]:
    slow = {one.member.identity: one for one in verdict.slow}
    for member in verdict.fleet.members:
        finding, run = slow.get(member.identity), member.run
        yield {
            **member.which,
            "run_id": run.id if run else None,
            "started_at_utc": run.description.started_at_utc if run else None,
            "slow": finding is not None,
            "reasons": [
                {"metric": reason.metric, "against": reason.against.value, "distance": reason.distance.size}
                for reason in (finding.reasons if finding else ())
            ],
            "seen": list(finding.seen) if finding else [],
            "failed": {row.case_id: row.status for row in run.failed} if run else {},
            "reason": member.reason or None,
        }


def open_metrics(verdict: Verdict) -> str:
    """A fleet as gauges, in the format of ``nightly.monitoring.open_metrics``."""
    slow = {one.member.identity for one in verdict.slow}
    members = verdict.fleet.members
    distances = [
        ({**_labels(member), "metric": one.name}, figure.fleet.size)
        for group in verdict.groups
        for one in group.metrics
        for member, figure in zip(group.members, one.figures, strict=True)
        if figure and figure.fleet
    ]
    samples: dict[str, Samples] = {
        "smembench_fleet_device_slow": [(_labels(member), float(member.identity in slow)) for member in members],
        "smembench_fleet_device_ok": [(_labels(member), float(not member.failed)) for member in members],
        "smembench_fleet_distance_ratio": distances,
        "smembench_fleet_devices": [({}, float(len(members)))],
        "smembench_fleet_slow_devices": [({}, float(len(slow)))],
        "smembench_fleet_exit_code": [({}, float(verdict.exit_code))],
    }
    return exposition(_HELP, samples)


def _labels(member: Member) -> dict[str, str]:
    return {name: text or "" for name, text in member.which.items()}
