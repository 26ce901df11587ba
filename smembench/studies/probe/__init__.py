"""The data sheet of a GPU's shared memory: one short measurement per property.

A family of properties is a module with ``CAPABILITY``, the least compute capability that it needs, ``SOURCE``, its
CUDA C, and ``figures``, which measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from smembench.model.measurement import Status
from smembench.model.text import one_line
from smembench.studies.probe.figure import Figure, Unverified

if TYPE_CHECKING:
    from smembench.studies.probe.bench import Bench

FAMILIES = {
    "latency": "cycles of a load that depends on the one before it, by memory",
    "constant": "latency and sizes of the constant caches",
    "bandwidth": "shared memory's, of loads and stores by their width",
    "conflicts": "what n-way bank conflicts cost, over loads without",
    "atomics": "cycles per request of atomic additions, by contention",
    "matrices": "ldmatrix and stmatrix, without conflicts and with them",
    "carveout": "blocks that an SM holds, by their shared memory and by the carve-out that they prefer",
    "copies": "copies from global memory: through registers, asynchronous and in bulk",
    "clusters": "distributed shared memory, by cluster size",
}
"""The families in their order, and what each measures."""


def probe(bench: Bench, families: Iterable[str] = FAMILIES) -> Iterator[Figure]:
    """Measure the families one after another; one that fails or that the device lacks is a line with the reason."""
    for name in families:
        for figure in _figures(bench, name):
            yield replace(figure, family=name)


def _figures(bench: Bench, name: str) -> Iterator[Figure]:
    family = import_module(f"{__name__}.{name}")
    if bench.capability < family.CAPABILITY:
        major, minor = family.CAPABILITY
        yield Figure.missing(name, Status.SKIPPED, f"not on this device: needs compute capability {major}.{minor}")
        return
    try:
        yield from family.figures(bench)
    except Unverified as error:
        yield Figure.missing(name, Status.WRONG_RESULT, str(error))
    except Exception as error:  # CUDA's and the compiler's: the other families go on
        yield Figure.missing(name, Status.FAILED, one_line(error))
