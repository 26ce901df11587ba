"""A case on a real GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from smembench.devices.cuda_prepared import CudaPrepared
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.registry import kernel_of
from smembench.model.case import Case

if TYPE_CHECKING:
    from smembench.devices.cuda import CudaDevice
    from smembench.model.problem import Array


@contextmanager
def launched(gpu: CudaDevice, case: Case, inputs: tuple[Array, ...] | None = None) -> Iterator[CudaPrepared]:
    """A case that was launched once on a poisoned output, on random inputs if there are none."""
    problem = PROBLEMS[case.problem]
    prepared = gpu.prepare(case, kernel_of(case), problem, inputs or problem.inputs(case, seed=1))
    assert isinstance(prepared, CudaPrepared)
    prepared.poison()
    prepared.launch()
    yield prepared
    prepared.close()


def output(gpu: CudaDevice, case: Case) -> Callable[[tuple[Array, ...]], Array]:
    """What the case makes of inputs."""

    def run(inputs: tuple[Array, ...]) -> Array:
        with launched(gpu, case, inputs) as prepared:
            return prepared.output()

    return run


def samples(gpu: CudaDevice, case: Case, count: int) -> list[float]:
    """So many samples in ms, the least first."""
    with launched(gpu, case) as prepared:
        sampler = prepared.sampler(0.02)
        return sorted(sampler.take() for _ in range(count))
