"""A device's properties and its limits."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from smembench.model.ranges import Count, Positive, Ratio, Reading, Size

MEASURED = ("event_pair_us", "empty_kernel_us", "memory_bytes")
"""Fields of ``DeviceInfo`` that are measured at each start and may differ between runs on the same device."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a device. None means no such limit; ``multiprocessors`` and ``capability`` are None on a CPU.

    Attributes:
        flush_bytes: memory that a flush of the cache takes.
        max_shared_bytes: shared memory that a kernel may declare.
        max_dynamic_bytes: shared memory of a block, with what a launch gives it.
    """

    free_bytes: int
    flush_bytes: int = 0
    max_threads: int | None = None
    max_block: tuple[int, int] | None = None
    max_grid: tuple[int, int] | None = None
    max_shared_bytes: int | None = None
    max_dynamic_bytes: int | None = None
    max_elements: int | None = None
    multiprocessors: int | None = None
    capability: str | None = None


class DeviceInfo(BaseModel):
    """A device as run.json describes it. Fields of other versions are kept.

    Attributes:
        name: as in ``--device``: ``cuda:0`` or ``cpu``. An anonymous run.json has only a CPU's name, kind and ``uuid``.
        model: what its vendor calls it.
        uuid: a GPU's; in an anonymous run a pseudonym, also of a CPU (see ``run.pseudonym``).
        l2_bytes: size of the last-level cache, on the CPU too.
        peak_gb_s: memory clock × 2 × bus width, in 10^9 bytes per second.
        pcie_generation_max, pcie_width_max: of the link between this GPU and this host, in lanes.
        nvlinks: number of NVLinks, up or down; None for a GPU without.
        event_pair_us: what an event pair reads around nothing; it is subtracted from every GPU sample.
        empty_kernel_us: what an event pair reads around an empty kernel, after that subtraction.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False, protected_namespaces=())
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)

    name: str
    kind: str = Field(default_factory=lambda given: given.get("name", "").partition(":")[0])
    model: str = Field(default_factory=lambda given: given.get("name", ""))
    memory_bytes: Count = 0
    threads: Size | None = None
    uuid: str | None = None
    compute_capability: str | None = None
    sm_count: Size | None = None
    l2_bytes: Count | None = None
    peak_gb_s: Positive | None = None
    driver: str | None = None
    cuda: str | None = None
    sm_clock_max_mhz: Count | None = None
    memory_clock_max_mhz: Count | None = None
    power_limit_w: Ratio | None = None
    ecc: bool | None = None
    mig: bool | None = None
    pcie_generation_max: Count | None = None
    pcie_width_max: Count | None = None
    nvlinks: Count | None = None
    event_pair_us: Reading | None = None
    empty_kernel_us: Reading | None = None

    @property
    def known(self) -> dict[str, JsonValue]:
        """The known properties by name, as run.json stores them."""
        return self.model_dump(exclude_unset=True, exclude_none=True)
