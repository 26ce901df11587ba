"""Made-up fleets whose slow GPUs are known, in memory or as run folders, which the store's own writers write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import numpy as np
import numpy.typing as npt

from smembench.model.case import Block, Case
from smembench.model.device import DeviceInfo
from smembench.model.measurement import Conditions, Measurement, Status, Trial
from smembench.store.assemble import assemble
from smembench.store.run import Run
from smembench.store.run_folder import RunFolder, new_run_id
from smembench.store.run_json import Description, Host, StoredConfig
from smembench.studies.fleet.members import Fleet, Member

BEGIN = datetime(2026, 1, 1, 2, tzinfo=UTC)
TIMES = {
    Case("transpose", "memcpy", "cuda:0", "float32", 8192, 8192): 0.1307,
    Case("transpose", "transposeSmem", "cuda:0", "float32", 8192, 8192, None, Block(32, 32), 0): 0.5195,
    Case("transpose", "transposeSmemPad", "cuda:0", "float32", 8192, 8192, None, Block(32, 32), 1): 0.2986,
    Case("matmul", "tiled", "cuda:0", "float32", 4096, 4096, 4096, Block(32, 32)): 17.76,
}
"""Cases and their ms per launch on an ordinary GPU of the fleet."""
CALM = Conditions(
    sm_clock_mhz=1980,
    memory_clock_mhz=3201,
    temperature_c=40,
    power_w=400.0,
    throttle_reasons="none",
    other_processes=0,
    ecc_corrected=0,
    ecc_uncorrected=0,
    pcie_generation=5,
    pcie_width=16,
    nvlinks_up=18,
)
_ROUNDS, _SAMPLES, _BETWEEN_SAMPLES = 3, 10, 0.0003


@dataclass(frozen=True, slots=True)
class Special:
    """How a GPU differs from the others of its fleet.

    Attributes:
        slow: how much slower it is, as a fraction: in every case, or by kernel.
        conditions: its state beside each figure.
        failed: why a case has no figure, by kernel.
        model: what its vendor calls it.
        cut_off: whether its run was killed after the first round, so that it has a journal still.
    """

    slow: float | Mapping[str, float] = 0.0
    conditions: Conditions = CALM
    failed: Mapping[str, str] | None = None
    model: str = "NVIDIA H200"
    cut_off: bool = False

    def slower(self, kernel: str) -> float:
        """The fraction for a kernel."""
        return self.slow.get(kernel, 0.0) if isinstance(self.slow, Mapping) else self.slow


@dataclass(frozen=True, slots=True)
class MadeGpu:
    """A GPU of a made-up fleet with one night's run."""

    host: str
    info: DeviceInfo
    description: Description
    trials: Sequence[Trial]
    complete: bool

    @property
    def measurements(self) -> list[Measurement]:
        """What a run makes of its trials."""
        cases = list(dict.fromkeys(trial.case for trial in self.trials))
        return assemble(cases, self.trials, {self.info.name: self.info}, {"cuda": 0.005}, None)

    def member(self) -> Member:
        """What a study reads."""
        run = Run.of(self.description, self.measurements, complete=self.complete)
        return Member(self.host, self.info.name, self.info, run, "" if self.complete else "the run was cut off")

    def write(self, folder: Path) -> Path:
        """Write the run below ``folder``, apart from those of other GPUs, and return its own folder."""
        stored = RunFolder.create(folder / f"{self.host}-{self.info.name.replace(':', '-')}", self.description)
        if not self.complete:
            for trial in self.trials:
                stored.append(trial)
        stored.finish(self.measurements, complete=self.complete)
        return stored.path


def made_gpus(
    count: int,
    special: Mapping[int, Special] | None = None,
    *,
    per_host: int = 8,
    spread: float = 0.002,
    noise: float = 0.0005,
    seed: int = 0,
    night: int = 0,
) -> list[MadeGpu]:
    """The GPUs of a fleet in one night.

    Args:
        count: number of GPUs.
        special: the GPUs that differ from the others, by their place in the fleet.
        per_host: GPUs per host; hosts are node0, node1 and so on.
        spread: standard deviation of equal GPUs' times, as a fraction; each GPU and case keeps its own every night.
        noise: the same between the rounds of a case, new every night.
        seed: of spread and noise.
        night: days after the first night.
    """
    rng = np.random.default_rng([seed, night, 1])
    own = np.exp(np.random.default_rng(seed).normal(0, spread, (count, len(TIMES))))
    result = []
    for place in range(count):
        one, host, device = (
            (special or {}).get(place, Special()),
            f"node{place // per_host}",
            f"cuda:{place % per_host}",
        )
        info = DeviceInfo(
            name=device,
            model=one.model,
            memory_bytes=150_000_000_000,
            uuid=f"GPU-{uuid5(NAMESPACE_URL, f'{host}/{device}')}",
            compute_capability="9.0",
            sm_count=132,
            l2_bytes=62_914_560,
            peak_gb_s=4916.7,
            sm_clock_max_mhz=1980,
            memory_clock_max_mhz=3201,
            pcie_generation_max=5,
            pcie_width_max=16,
            nvlinks=18,
        )
        began = BEGIN + timedelta(days=night)
        description = Description(
            run_id=new_run_id("fleet", began),
            started_at_utc=began.isoformat(),
            seed=1000 * night + place,
            config=StoredConfig(name="fleet", sweep=[{"problem": "transpose"}, {"problem": "matmul"}]),
            devices=[info],
            host=Host(name=host),
        )
        trials = _trials(one, device, own[place], rng, noise, began)
        result.append(MadeGpu(host, info, description, trials, complete=not one.cut_off))
    return result


def made_fleet(count: int, special: Mapping[int, Special] | None = None, *, per_host: int = 8, seed: int = 0) -> Fleet:
    """A fleet as a study reads it, in memory."""
    return Fleet(Path("fleet"), [gpu.member() for gpu in made_gpus(count, special, per_host=per_host, seed=seed)])


def _trials(
    one: Special,
    device: str,
    own: npt.NDArray[np.float64],
    rng: np.random.Generator,
    noise: float,
    began: datetime,
) -> list[Trial]:
    result = []
    for number in range(1 if one.cut_off else _ROUNDS):
        for place, (made, elapsed_ms) in enumerate(TIMES.items()):
            case = Case(**{name: getattr(made, name) for name in Case.__slots__} | {"device": device})
            level = elapsed_ms * own[place] * (1 + one.slower(case.kernel)) * (1 + rng.normal(0, noise))
            samples = tuple((level * (1 + rng.normal(0, _BETWEEN_SAMPLES, _SAMPLES))).tolist())
            why = (one.failed or {}).get(case.kernel, "")
            result.append(
                Trial(
                    case,
                    number,
                    Status.FAILED if why else Status.OK,
                    began.isoformat(),
                    why,
                    verified=not why,
                    max_error=None if why else 0.0,
                    samples=() if why else samples,
                    conditions=one.conditions,
                )
            )
    return result
