"""Nights as a stored run's cases would have gone under a model of noise: its cases with new samples."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from smembench.store import schema
from smembench.store.csv_files import CASES, SAMPLES, table_text
from smembench.store.load import load
from smembench.store.run import Run
from smembench.store.run_folder import RUN, to_json

Floats = npt.NDArray[np.float64]

STORED = {
    "nightly": Path(__file__).parents[2] / "results/reference/20261201T124959Z-nightly",
    "limits": Path(__file__).parents[2] / "results/reference/20261123T200119Z-limits",
}
"""By config a run whose cases are cloned."""
CPU = (0.03, 0.042)
"""What a CPU's case differs by between runs, and as much between rounds, under any model: the stored ones do so by
3.8 and 3.3 %, and ten runs on a busier host, which are not kept, by 4.2 % (2026-11-20)."""
BEGIN = datetime(2026, 1, 1, 2, tzinfo=UTC)
TRIAL_SECONDS = 0.2
"""From one trial to the next: 139 cases took a run of 2026-11-20 100 s."""
CI_WIDTH, LEAST, ROUNDS, EXTRA, MAX_SECONDS = 0.005, 30, 3, 12, 5.0
"""The stop rule of the stored run."""


@dataclass(frozen=True, slots=True)
class Model:
    """What nights differ by though nothing changed; fractions, standard deviations unless it says otherwise.

    Attributes:
        case: from and to, of a GPU's case between runs, uniform over the cases.
        shared: of all cases of a run.
        group: of the cases of one kernel and size.
        thermal: the rise during a run.
        slow_rounds: how often a round is slower by a mean of 1 %.
        round_modes, run_modes: how many cases have a second mode, 1 to 3 % away, by round with a probability of 0.15
            or by run with 0.25.
        memory: AR(1) of what runs differ by.
        freedom: degrees of freedom of Student's t between runs, with the same standard deviation; 0 is normal.
        round_freedom: the same between rounds.
        season: how far all cases are off at most, over ``SEASON`` nights.
        levels: how often one case is at a level 8 % slower, by run.
        round: from and to, between the rounds of a case.
        flip_ms: distance of the two levels of the clock.
        outliers: how often a sample is slower, by a mean of 5 %.
        log_normal: whether factors are exponentials of normal values.
    """

    case: tuple[float, float] = (0.0, 0.0)
    shared: float = 0.0
    group: float = 0.0
    thermal: float = 0.0
    slow_rounds: float = 0.0
    round_modes: float = 0.0
    run_modes: float = 0.0
    memory: float = 0.0
    freedom: int = 0
    round_freedom: int = 0
    season: float = 0.0
    levels: float = 0.0
    config: str = "nightly"
    round: tuple[float, float] = (0.0003, 0.0015)
    flip_ms: float = 1.3e-4
    outliers: float = 0.05
    correlation: float = 0.3
    mode_sign: float = 1.0


N0 = Model(case=(0.0004, 0.0015), shared=0.0005, thermal=0.001)
N1P = Model(case=(0.0005, 0.004), shared=0.002, group=0.002, thermal=0.003, slow_rounds=0.03)
N1 = replace(N1P, round_modes=0.05)
N1M = replace(N1, run_modes=0.03)
N3 = replace(N1, memory=0.8)
N4 = Model(round=(0.0005, 0.01), flip_ms=0.0, outliers=0.0, correlation=0.0)
MODELS = {
    "N0": N0,
    "N4": N4,
    "N1p": N1P,
    "N1": N1,
    "N1m": N1M,
    "N3": N3,
    "AR(1)": replace(N1P, memory=0.8),
    "t3": replace(N1P, freedom=3),
    "t3 and rounds": replace(N1P, freedom=3, round_freedom=3),
    "season": replace(N1P, season=0.01),
    "levels 0.05": replace(N1P, levels=0.05),
    "levels 0.2": replace(N1P, levels=0.2),
    "levels 0.5": replace(N1P, levels=0.5),
    "limits N0": replace(N0, config="limits"),
    "limits N1p": replace(N1P, config="limits"),
    "limits N1m": replace(N1M, config="limits"),
}
SEASON = 60
"""Nights of a season."""
APART = 0.08
"""Distance of the two levels of ``Model.levels``."""


@cache
def stored(config: str = "nightly") -> Run:
    """The run that is cloned, as of devices that say which they are."""
    run = load(STORED[config])
    devices = [device.model_copy(update={"uuid": f"{device.name}-1"}) for device in run.description.devices]
    return replace(
        run,
        rows=[row for row in run.rows if row.ok],
        description=run.description.model_copy(update={"devices": devices}),
    )


class Nights:
    """Runs of one machine under a model, night by night; the same seed gives the same nights."""

    def __init__(self, model: Model, seed: int) -> None:
        self._model, self._rng, self._night = model, np.random.default_rng(seed), 0
        self._stored = stored(model.config)
        rows, rng = self._stored.rows, self._rng
        self.cases = [row.case_id for row in rows]
        self.base = np.array([row.elapsed_ms for row in rows], dtype=np.float64)
        count = len(rows)
        self._launches = np.array([len(self._stored.values(row.case_id)) < LEAST for row in rows])
        groups = {key: place for place, key in enumerate(dict.fromkeys((row.kernel, row.n) for row in rows))}
        self._group = np.array([groups[row.kernel, row.n] for row in rows])
        cpu, of_cpu = np.array([row.device == "cpu" for row in rows]), rng.uniform(*CPU, count)
        self._case_sd = np.where(cpu, of_cpu, rng.uniform(*model.case, count))
        self._round_sd = np.where(cpu, of_cpu, rng.uniform(*model.round, count))
        long = np.exp(rng.uniform(math.log(2e-4), math.log(2e-3), count))
        self._sample_sd = np.where(self.base < 0.01, rng.uniform(0.003, 0.008, count), long)
        self._heat = rng.uniform(0.5, 1.0, count)
        size = model.mode_sign * rng.uniform(0.01, 0.03, count)
        kinds = rng.permutation(count)
        by_round, by_run = round(model.round_modes * count), round(model.run_modes * count)
        self._round_mode = np.where(np.isin(np.arange(count), kinds[:by_round]), size, 0.0)
        self._run_mode = np.where(np.isin(np.arange(count), kinds[by_round : by_round + by_run]), size, 0.0)
        self._effects: Floats | None = None
        self.alternates = rng.choice(np.flatnonzero(~cpu & (self.base >= 0.03) & (self.base < 30.0)))
        self.slower: list[bool] = []
        """By night, whether the case ``alternates`` was at its slower level."""
        self._phase = rng.uniform(0, SEASON)

    def _run_effects(self) -> Floats:
        """What this run's cases are off by, in logarithms."""
        model, rng = self._model, self._rng
        fresh: Floats = (
            self._case_sd * self._draw(model.freedom, len(self.base))
            + model.shared * self._draw(model.freedom, 1)
            + model.group * self._draw(model.freedom, self._group.max() + 1)[self._group]
        )
        if self._effects is not None and model.memory:
            fresh = model.memory * self._effects + math.sqrt(1 - model.memory**2) * fresh
        self._effects = fresh
        fresh = fresh + self._run_mode * (rng.random(len(self.base)) < 0.25)
        fresh += model.season * math.sin(2 * math.pi * (self._night + self._phase) / SEASON)
        self.slower.append(bool(rng.random() < model.levels))
        fresh[self.alternates] += math.log1p(APART) * self.slower[-1]
        return fresh

    def _draw(self, freedom: int, count: int) -> Floats:
        """Values of variance 1, normal or Student's."""
        if not freedom:
            return self._rng.normal(size=count)
        return self._rng.standard_t(freedom, size=count) * math.sqrt((freedom - 2) / freedom)

    def next(self, steps: Mapping[str, float] | None = None, *, noisier: float = 0.0, all_by: float = 0.0) -> Run:
        """The next night's run.

        Args:
            steps: by case id, how much slower it is, as a fraction.
            noisier: standard deviation that is added between the rounds of every case.
            all_by: how much slower every case is.
        """
        model, rng, count = self._model, self._rng, len(self.base)
        level = self.base * np.exp(self._run_effects()) * (1 + all_by)
        for name, step in (steps or {}).items():
            level[self.cases.index(name)] *= 1 + step
        warm = model.thermal * math.exp(rng.normal(0, 0.3)) * self._heat
        rounds: list[list[list[float]]] = [[] for _ in range(count)]
        running, clock, spent, seconds = np.arange(count), rng.random() < 0.5, np.zeros(count), 0.0
        for number in range(ROUNDS + EXTRA):
            order = rng.permutation(len(running))
            flips = rng.random(len(running)) < (1 - math.exp(-2 * TRIAL_SECONDS)) / 2
            high = np.empty(len(running), dtype=bool)
            high[order] = clock ^ (np.cumsum(flips) % 2 == 1)
            clock = bool(high[order[-1]]) if len(running) else clock
            at = np.empty(len(running))
            at[order] = seconds + TRIAL_SECONDS * np.arange(len(running))
            seconds += TRIAL_SECONDS * len(running)
            off = self._round_sd[running] * self._draw(model.round_freedom, len(running))
            off += noisier * rng.normal(size=len(running))
            off += np.where(rng.random(len(running)) < model.slow_rounds, rng.exponential(0.01, len(running)), 0.0)
            off += np.where(rng.random(len(running)) < 0.15, self._round_mode[running], 0.0)
            off += warm[running] * -np.expm1(-at / 30)
            share = 10 << max(number - ROUNDS + 1, 0)
            times = self._samples(level[running] * np.exp(off), self._sample_sd[running], share)
            times += model.flip_ms * (high[:, None] - 0.5)
            for place, case in enumerate(running.tolist()):
                kept = times[place]
                if self._launches[case]:
                    kept = kept[: max(math.floor(MAX_SECONDS / ROUNDS / (kept[0] / 1e3)), 1)]
                rounds[case].append(kept.tolist())
                spent[case] += sum(rounds[case][-1]) / 1e3
            if number >= ROUNDS - 1:
                running = np.array([case for case in running if not _enough(rounds[case], spent[case])], dtype=np.intp)
            if not len(running):
                break
        return self._run(rounds)

    def _samples(self, level: Floats, sd: Floats, share: int) -> Floats:
        model, rng = self._model, self._rng
        noise = rng.normal(size=(len(level), share))
        for place in range(1, share):
            noise[:, place] = (
                model.correlation * noise[:, place - 1] + math.sqrt(1 - model.correlation**2) * noise[:, place]
            )
        slow = np.where(rng.random(noise.shape) < model.outliers, rng.exponential(0.05, noise.shape), 0.0)
        return np.asarray(level[:, None] * np.exp(sd[:, None] * noise) * (1 + slow), dtype=np.float64)

    def _run(self, rounds: Sequence[Sequence[Sequence[float]]]) -> Run:
        self._night += 1
        began = BEGIN + timedelta(days=self._night)
        run_id = f"{began:%Y%m%dT%H%M%SZ}-{self._model.config}"
        update = {"run_id": run_id, "started_at_utc": began.isoformat(), "complete": True, "checksums": {}}
        rows, samples = [], {}
        for row, taken in zip(self._stored.rows, rounds, strict=True):
            ordered = np.sort(np.concatenate([np.asarray(values) for values in taken]))
            samples[row.case_id] = dict(enumerate(taken))
            rows.append(
                replace(
                    row,
                    run_id=run_id,
                    elapsed_ms=float(np.median(ordered)),
                    elapsed_ms_min=float(ordered[0]),
                    elapsed_ms_max=float(ordered[-1]),
                    samples=len(ordered),
                    rounds=len(taken),
                )
            )
        return Run(rows, self._stored.description.model_copy(update=update), samples)


def _enough(rounds: Sequence[Sequence[float]], spent: float) -> bool:
    """Whether a case's samples are as many as the stored run's stop rule asks for."""
    ordered = np.sort([value for values in rounds for value in values])
    count = len(ordered)
    if spent >= MAX_SECONDS or count < LEAST:
        return spent >= MAX_SECONDS
    rank = max(math.floor(count / 2 - 0.98 * math.sqrt(count)), 1)
    return bool((ordered[count - rank] - ordered[rank - 1]) / 2 <= CI_WIDTH * ordered[count // 2])


def write(run: Run, root: Path) -> Path:
    """Store a simulated run as the program would."""
    folder = root / run.id
    folder.mkdir(parents=True)
    (folder / CASES).write_text(table_text(schema.COLUMNS, map(schema.to_fields, run.rows)))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["schema_version", "run_id", "case_id", "round", "sample", "elapsed_ms"])
    for case, rounds in run.samples.items():
        for number, values in rounds.items():
            writer.writerows([1, run.id, case, number, place, repr(value)] for place, value in enumerate(values))
    (folder / SAMPLES).write_text(stream.getvalue())
    (folder / RUN).write_text(to_json(run.description.data))
    return folder
