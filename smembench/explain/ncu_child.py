"""The child process that launches cases, under ``ncu`` or alone.

The time of some kernels depends on where their arrays lie (results/reference/notes/timing.md). With the same work both
processes make the same allocations in the same order and so get the same addresses, if not always the same memory. A
single process cannot do both: under ncu events read nonsense.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pydantic import TypeAdapter

from smembench.model.case import Case
from smembench.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Work:
    """The task of the child.

    Attributes:
        cases: the cases to launch.
        launches: per case, for the profiler.
        samples: per case, after these launches; with 0 or 1 results are not checked, because only ncu's readings count.
        seconds: limit for sampling a case.
        records: print the medians of CUPTI's kernel records of the samples in place of the samples'.
        ahead_mib: MiB of device memory that are allocated before the arrays, and kept, so that these lie elsewhere.
    """

    cases: Sequence[Case]
    launches: int
    samples: int = 0
    seconds: float = 0.0
    records: bool = False
    ahead_mib: int = 0


WORK = TypeAdapter(Work)


def run(work: Work) -> None:
    """Launch the cases, and sample them with our own timer.

    For each sampled case print a line of JSON: ``ms``, the median, or ``wrong``, why its result is wrong.
    """
    import numpy as np
    from cuda.bindings import driver

    from smembench.devices.cuda import CudaDevice
    from smembench.explain.kernel_records import KernelRecords, per_launch
    from smembench.kernels import registry
    from smembench.kernels.device_memory import device_array
    from smembench.kernels.driver import checked
    from smembench.kernels.problems import PROBLEMS
    from smembench.launches.contract import Contract
    from smembench.run.sampling import Limit, collect
    from smembench.run.stop_rule import StopRule

    records = KernelRecords() if work.records else None
    device = CudaDevice()
    _ahead = device_array(work.ahead_mib * 2**20, np.uint8)
    for case in work.cases:
        problem: Problem = PROBLEMS[case.problem] if case.launch is None else Contract(case)
        kernel = registry.kernel_of(case)
        inputs = problem.inputs(case, seed=1)
        prepared = device.prepare(case, kernel, problem, inputs)
        prepared.poison()
        prepared.launch()
        if records is not None:
            records.take()
            prepared.launch()
            kernels = len(records.take())
        if work.samples > 1 and problem.checks:
            verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
            if not verdict.passed:
                print(json.dumps({"wrong": verdict.detail}), flush=True)
                continue
        checked(driver.cuProfilerStart())
        for _ in range(work.launches):
            prepared.launch()
        checked(driver.cuProfilerStop())
        if work.samples:
            sampler = prepared.sampler(StopRule().warmup)
            if records is not None:
                records.take()
            batch = collect(sampler, Limit(work.samples, work.seconds), device.conditions)
            values = batch.values if records is None else per_launch(records.take(), kernels)
            print(json.dumps({"ms": median(values)}), flush=True)
        prepared.close()


if __name__ == "__main__":
    run(WORK.validate_json(sys.argv[1]))
