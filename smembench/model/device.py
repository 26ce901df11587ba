"""What a device is and what it can run."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, JsonValue

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


class DeviceInfo(BaseModel):
    """What run.json says of a device. Facts that other versions told are kept.

    A run.json that should not tell the machine has a name and a kind alone. ``l2_bytes`` is the last-level cache, on
    the CPU too. ``peak_gb_s`` is memory clock × 2 × bus width, in 10^9 bytes a second. ``event_pair_us`` is what an
    event pair reads around nothing, taken off every GPU sample; ``empty_kernel_us`` what is left of the reading around
    an empty kernel.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", protected_namespaces=())
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)

    name: str
    kind: str = Field(default_factory=lambda given: given["name"].partition(":")[0])
    model: str = Field(default_factory=lambda given: given["name"])
    memory_bytes: int = 0
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

    @property
    def told(self) -> dict[str, JsonValue]:
        """The facts that are known, by name: what run.json holds."""
        return self.model_dump(exclude_unset=True, exclude_none=True)
