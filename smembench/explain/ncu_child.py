"""The child that launches cases, under ``ncu`` or alone.

Where an array lies decides what some kernels take: naiveGmem took 63 µs at 2048² in some places of an H200's memory and
70 in others (2026-11-20). One process does the same allocations as the other, in the same order, and so gets the same
places: what ncu reads in one and events in the other is the time of one thing. Under ncu itself events read nonsense.
"""

from __future__ import annotations

import json
import sys
from statistics import median

from smembench.model.case import Case


def run(work: str) -> None:
    """Launch the cases of ``work``, and print what our own timer reads of each.

    Args:
        work: JSON of ``cases``, of ``launches`` of each for the profiler, and of ``samples`` to take of each within
            ``seconds`` when the launches are done. Without samples none are taken, with a single one nothing is
            checked: ncu is there, and its readings are what counts.

    Each case that was sampled gives a line of JSON: ``ms``, the median, or ``wrong``, the reason not to believe it.
    """
    from smembench.devices.cuda import CudaDevice
    from smembench.kernels import registry
    from smembench.kernels.numba_cuda import cuda
    from smembench.kernels.problems import PROBLEMS
    from smembench.run.sampling import collect
    from smembench.run.stop_rule import StopRule

    asked = json.loads(work)
    device = CudaDevice()
    for case in map(Case.from_dict, asked["cases"]):
        problem, kernel = PROBLEMS[case.problem], registry.kernel_of(case)
        inputs = problem.inputs(case, seed=1)
        prepared = device.prepare(case, kernel, problem, inputs)
        prepared.poison()
        prepared.launch()
        if asked["samples"] > 1:
            verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
            if not verdict.passed:
                print(json.dumps({"wrong": verdict.detail}), flush=True)
                continue
        cuda.profile_start()
        for _ in range(asked["launches"]):
            prepared.launch()
        cuda.profile_stop()
        if asked["samples"]:
            sampler = prepared.sampler(StopRule().warmup)
            batch = collect(sampler, asked["samples"], asked["seconds"], device.conditions)
            print(json.dumps({"ms": median(batch.values)}), flush=True)
        prepared.close()


if __name__ == "__main__":
    run(sys.argv[1])
