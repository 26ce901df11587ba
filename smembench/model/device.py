"""What a device is and what it can run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_type_hints

from smembench.model.errors import UsageError

MEASURED = ("event_pair_us", "empty_kernel_us", "memory_bytes")
"""Fields of a device that are read anew each time, and may differ between runs on the same one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a device can run. None means no limit of that kind; ``multiprocessors`` are a GPU's."""

    free_bytes: int
    max_threads: int | None = None
    max_block: tuple[int, int] | None = None
    max_grid: tuple[int, int] | None = None
    max_shared_bytes: int | None = None
    max_elements: int | None = None
    multiprocessors: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What run.json says of a device.

    ``l2_bytes`` is the last-level cache, on the CPU too. ``peak_gb_s`` is memory clock × 2 × bus width, in 10^9
    bytes a second. ``event_pair_us`` is what an event pair reads around nothing, taken off every GPU sample;
    ``empty_kernel_us`` what is left of the reading around an empty kernel.
    """

    name: str
    kind: str
    model: str
    memory_bytes: int
    threads: int | None = None
    uuid: str | None = None
    compute_capability: str | None = None
    sm_count: int | None = None
    l2_bytes: int | None = None
    peak_gb_s: float | None = None
    driver: str | None = None
    cuda: str | None = None
    sm_clock_max_mhz: int | None = None
    memory_clock_max_mhz: int | None = None
    power_limit_w: float | None = None
    ecc: bool | None = None
    mig: bool | None = None
    event_pair_us: float | None = None
    empty_kernel_us: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what the device does not have is left out."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DeviceInfo:
        """A device as run.json describes it, which leaves out what it does not have or should not tell.

        Raises:
            UsageError: for a field that is not of its type.
        """
        hints = get_type_hints(cls)
        described = {"kind": data["name"].partition(":")[0], "model": data["name"], "memory_bytes": 0, **data}
        known = {key: value for key, value in described.items() if key in hints}
        for key, value in known.items():
            # A float may well be written without a point.
            if not isinstance(value, hints[key]) and not (isinstance(value, int) and "float" in str(hints[key])):
                raise UsageError(f"run.json: the device {data['name']} has the {key} {value!r}")
        return cls(**known)
