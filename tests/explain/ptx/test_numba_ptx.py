"""Numba's kernels traced by the PTX that is linked for a launch: figures as from the Python they are written in."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from programs import case_of, numba_kernel
from smembench.explain.costs import Costs
from smembench.explain.ptx.content import GlobalArray
from smembench.explain.ptx.costs import costs_of
from smembench.explain.ptx.memory import SPACING
from smembench.explain.ptx.parse import parse
from smembench.explain.ptx.registers import Launch
from smembench.explain.ptx.trace import trace
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.launches.tensor_map_argument import MAP_BYTES, TensorMapArgument
from smembench.model.case import Case
from smembench.model.formats import carried
from smembench.studies.explain import explained
from smembench.toolchains import numba
from smembench.toolchains.machine_code import machine_code

pytest.importorskip("cuda.bindings.nvjitlink")

SMS = 132
FIGURES_OF_TILES = ("shared_bytes", "global_bytes", "arriving_bytes", "wavefronts")


def linked(case: Case, program: NumbaKernel) -> str:
    """What nvJitLink hands to ptxas."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch="sm_90", link_time_optimization=True, ptx=True, lineinfo=True, no_cache=True)
    code = Linker(ObjectCode.from_ltoir(numba.by_nvvm(case, program, "9.0")), options=options).link("ptx").code
    return bytes(code).decode().rstrip("\0")


def by_ptx(case: Case) -> Costs:
    program, problem = numba_kernel(case).on(SMS), PROBLEMS[case.problem]
    (kernel,) = parse(linked(case, program)).kernels.values()
    arrays: list[GlobalArray] = []
    values: list[int] = []
    for name, length, dtype in zip(problem.arrays, problem.lengths(case), problem.array_types(case), strict=True):
        size, begin = np.dtype(carried(dtype)).itemsize, (len(arrays) + 1) * SPACING
        arrays.append(GlobalArray(name, begin, length * size, None))
        values += [0, 0, length, size, begin, length, size]
    values += problem.scalars(case)
    maps = {}
    for number, each in enumerate(program.tensor_maps):
        begin = (len(arrays) + 1) * SPACING
        element: np.dtype[Any] = np.dtype(str(carried(problem.array_types(case)[each.array])))
        arrays.append(GlobalArray(f"map {number}", begin, MAP_BYTES, None))
        values.append(begin)
        shape: tuple[int, ...] = (each.rows, each.columns)
        box: tuple[int, ...] = (each.row_bytes // element.itemsize, each.tile_rows)
        if each.apart > 1:
            shape, box = (each.rows // each.apart, each.apart, each.columns), (box[0], 1, box[1])
        maps[f"map {number}"] = TensorMapArgument(shape, element, box, each.row_bytes)
    parameters = {
        each.name: int(value).to_bytes(each.bytes, "little")
        for each, value in zip(kernel.parameters, values, strict=True)
    }
    code = machine_code(case, "9.0")
    assert code is not None
    cluster = (program.cluster, 1, 1)
    launch = Launch((*program.grid, 1), (*program.block, 1), parameters, program.dynamic_bytes, maps, cluster)
    traced = trace(kernel, launch, arrays, "kernel.py", code.lined)
    assert not traced.mistakes
    assert not traced.unfollowed
    sizes = {array.name: array.bytes for array in arrays}
    launched = prod(program.grid), prod(program.block)
    return costs_of(traced, case.kernel, sizes=sizes, shared_bytes=0, launched=launched, code=(None, code))


@pytest.mark.parametrize(
    "name",
    [
        "transposeSmem",
        "transposeSmemPad",
        "transposeStreamed",
        "naive",
        "tiled1D",
        "sumInterleaved",
        "sumSequential",
        "sumPersistent",
    ],
)
def test_linked_ptx_costs_what_its_python_costs(name: str) -> None:
    """At ragged sizes, with the accesses that the machine code has and the warps that come to it without a lane.

    How many of those load is only estimated by a trace of Python, which does not tell a line's loads apart.
    """
    (kernel,) = (each for each in registry.kernels("cuda") if (each.name, each.compiler) == (name, "numba"))
    case = case_of(kernel, 517, 389, 72)
    if kernel.problem == "reduction":
        case = replace(case, m=1, n=517 * 389)
    python, ptx = explained(case, "9.0", SMS), by_ptx(case)
    for kind in ("load", "store"):
        totals = [sum(each.of_all for each in costs.shared if each.site.kind == kind) for costs in (ptx, python)]
        assert totals[0] == pytest.approx(totals[1])
        assert ptx.sectors(kind) == pytest.approx(python.sectors(kind))
    assert ptx.load_requests == python.load_requests
    assert ptx.idle.get("store") == python.idle.get("store")


@pytest.mark.parametrize("name", ["wgmma", "wgmmaSpecialized", "wgmmaStored", "wgmmaOverlapped", "wgmmaClustered"])
@pytest.mark.parametrize("sizes", [(1024, 1024, 512), (1000, 1480, 136)])
def test_tiles_of_the_tma_and_of_tensor_cores(name: str, sizes: tuple[int, int, int]) -> None:
    """An instruction takes 32 bytes along k, where the trace of Python counts tiles of 128."""
    (kernel,) = (each for each in registry.kernels("cuda") if (each.name, each.compiler) == (name, "numba"))
    case = case_of(kernel, *sizes, "bfloat16")
    python, ptx = explained(case, "9.0", SMS), by_ptx(case)
    for kind in ("copy", "store", "operand"):
        totals = [
            [sum(getattr(each, of) for each in costs.tiles if each.access.kind == kind) for of in FIGURES_OF_TILES]
            for costs in (ptx, python)
        ]
        assert totals[0] == totals[1]
    reached = [{(each.access.kind, each.access.blocks) for each in costs.tiles} for costs in (ptx, python)]
    assert reached[0] == reached[1]
    assert (("copy", 2) in reached[0]) == (name == "wgmmaClustered")
