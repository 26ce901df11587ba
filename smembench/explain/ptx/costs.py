"""Explain a PTX kernel with the arguments of a launch."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from smembench.explain.banks import ideal_wavefronts, is_broadcast, wavefronts
from smembench.explain.coalescing import efficiency, ideal_sectors, sectors
from smembench.explain.constant import addresses
from smembench.explain.costs import Costs, by_memory, resident_blocks
from smembench.explain.idle import idle_requests
from smembench.explain.ptx.clusters import cluster_of
from smembench.explain.ptx.content import GlobalArray
from smembench.explain.ptx.memory import SPACING
from smembench.explain.ptx.program import PtxKernel
from smembench.explain.ptx.registers import Launch
from smembench.explain.ptx.trace import BY_WORK, Chosen, trace
from smembench.explain.requests import Request, distinct
from smembench.explain.tiles import tile_traffic
from smembench.explain.trace import Trace
from smembench.explain.traffic import traffic
from smembench.kernels.program import MAP_BYTES
from smembench.launches.arguments import check_count
from smembench.launches.array_argument import Argument, ArrayArgument
from smembench.launches.dimensions import Dimensions, as_text, check_launch
from smembench.launches.parameters import scalar_bytes, structure_bytes
from smembench.launches.ptx_entry import TYPES, readable
from smembench.launches.tensor_map_argument import TensorMapArgument
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP
from smembench.toolchains.loaded import Parameter
from smembench.toolchains.machine_code import MachineCode


class Call(NamedTuple):
    """A launch of a kernel: grid and block in 1 to 3 dimensions, arguments, and bytes of dynamic shared memory.

    ``cluster`` is in blocks; None for that of the kernel, if it has one.
    """

    grid: Dimensions
    block: Dimensions
    arguments: Sequence[Argument]
    shared_bytes: int = 0
    cluster: Dimensions | None = None


def explain_ptx(
    kernel: PtxKernel,
    call: Call,
    *,
    title: str,
    filename: str,
    code: tuple[str | None, MachineCode | None] = (None, None),
    chosen: Chosen = BY_WORK,
) -> Costs:
    """Trace a PTX kernel on a block of each kind, and add up what its accesses cost.

    Args:
        kernel: its parameters bear the names that are shown.
        call: the launch, with an argument for each parameter.
        title: the kernel's name.
        filename: the source file of its lines.
        code: a compute capability, and what the kernel is compiled to for it, where they are known.
        chosen: as in ``trace``.

    Raises:
        UsageError: for arguments that it does not take, a grid, a block or a cluster that no GPU takes, and what is not
            traced.
    """
    grid, block, arguments, shared_bytes, given_cluster = call
    check_launch(grid, block)
    _check_block(kernel, block)
    check_count(title, [parameter.name for parameter in kernel.parameters], arguments)
    arrays: list[GlobalArray] = []
    parameters, sizes, maps = {}, {}, {}
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        if isinstance(argument, TensorMapArgument):
            parameters[parameter.name] = _map(arrays, parameter)
            maps[parameter.name] = argument
        elif parameter.bytes != np.dtype(TYPES[parameter.type]).itemsize:
            parameters[parameter.name] = structure_bytes(parameter, argument)
        elif isinstance(argument, ArrayArgument):
            parameters[parameter.name] = _placed(arrays, parameter, argument)
            sizes[parameter.name] = argument.element_bytes
        else:
            parameters[parameter.name] = scalar_bytes(parameter, argument)
    of_block = kernel.dynamic_begin + shared_bytes
    resident_blocks(code[0], prod(block), of_block)  # refuses what no trace could hold in memory
    x, y, z = (*grid, 1, 1)[:3]
    width, height, depth = (*block, 1, 1)[:3]
    capability, machine_code = code
    cluster = cluster_of(kernel, given_cluster, (x, y, z), (width, height, depth), capability)
    launch = Launch((x, y, z), (width, height, depth), parameters, shared_bytes, maps, cluster)
    traced = trace(kernel, launch, arrays, filename, None if machine_code is None else machine_code.lined, chosen)
    of_cluster = f" in clusters of {as_text(given_cluster or cluster)}" if prod(cluster) > 1 else ""
    return costs_of(
        traced,
        f"{title} · grid {as_text(grid)}{of_cluster} · block {as_text(block)}",
        sizes=sizes,
        shared_bytes=of_block,
        launched=(prod(grid), prod(block)),
        code=(capability, machine_code),
    )


def costs_of(
    traced: Trace,
    title: str,
    *,
    sizes: Mapping[str, int],
    shared_bytes: int,
    launched: tuple[int, int],
    code: tuple[str | None, MachineCode | None],
) -> Costs:
    """The cost of the accesses of a traced launch.

    Args:
        traced: with the accesses that the machine code has, where it is known.
        title: the kernel, its file, and how it is launched.
        sizes: bytes of the global arrays by name.
        shared_bytes: shared memory of a block.
        launched: blocks of the grid, and threads of a block.
        code: a compute capability, and what the kernel is compiled to for it, where they are known.

    Raises:
        UsageError: for an unknown compute capability.
    """
    capability, machine_code = code
    blocks, threads = launched
    requests = list(by_cost(traced).values())
    idle: Mapping[str, int] = {}
    if machine_code is not None and not traced.unfollowed:
        idle = idle_requests(traced, requests, machine_code, blocks * -(-threads // WARP))
    return Costs(
        title=title,
        pad=0,
        trace=traced,
        **by_memory(traced, requests)._asdict(),
        requests=requests,
        traffic=traffic(sizes, requests),
        tiles=tile_traffic(traced.tiles, traced.source),
        shared_bytes=shared_bytes,
        threads=threads,
        code=machine_code,
        occupancy=resident_blocks(capability, threads, shared_bytes, machine_code),
        idle=idle,
    )


def _check_block(kernel: PtxKernel, block: Dimensions) -> None:
    """Check that a kernel is compiled for a block: a GPU refuses to launch it with another."""
    text = f"block {as_text(block)}: {readable(kernel.name)} is compiled for"
    if kernel.block not in (None, (*block, 1, 1)[:3]):
        raise UsageError(f"{text} blocks of {as_text(kernel.block or ())} (.reqntid)")
    if prod(block) > kernel.most_threads:
        raise UsageError(f"{text} at most {kernel.most_threads} threads (__launch_bounds__), not {prod(block)}")


def _map(arrays: list[GlobalArray], parameter: Parameter) -> bytes:
    """The bytes of a tensor map, or of a pointer to one."""
    if parameter.bytes == MAP_BYTES:
        return bytes(MAP_BYTES)
    return _placed(arrays, parameter, ArrayArgument((MAP_BYTES,), np.dtype("uint8")))


def _placed(arrays: list[GlobalArray], parameter: Parameter, argument: ArrayArgument) -> bytes:
    """The bytes of a pointer to an array, which is added to ``arrays``."""
    if parameter.bytes != 8:
        raise UsageError(f"{parameter.name}: is no pointer but {parameter.bytes} bytes; give a number")
    begin = (len(arrays) + 1) * SPACING
    shape = argument.shape if argument.element_bytes == argument.bytes else ()
    arrays.append(GlobalArray(parameter.name, begin, argument.bytes, argument.content(), shape=shape))
    return (begin + argument.begin).to_bytes(8, "little")


def by_cost(traced: Trace) -> dict[Hashable, Request]:
    """Requests by site and cost, one for all with the same of both."""
    # A loop has thousands of requests but few shapes: the cost is computed once per shape.
    requests: dict[Hashable, Request] = {}
    for request in distinct(traced.accesses):
        key = (request.site, _cost(request))
        before = requests.get(key)
        requests[key] = request if before is None else replace(before, weight=before.weight + request.weight)
    return requests


def _cost(request: Request) -> tuple[float, ...]:
    """All figures of a request; a larger k moves rows of A apart by whole sectors, which does not change them."""
    lanes, width, kind = request.addresses, request.site.width, request.site.kind
    active = sum(address is not None for address in lanes)
    match request.site.space:
        case "shared":
            ideal = ideal_wavefronts(lanes, width, kind)
            return active, wavefronts(lanes, width, kind), ideal, is_broadcast(lanes, width)
        case "global":
            way = request.site.way
            return active, sectors(lanes, width, way), ideal_sectors(lanes, width), efficiency(lanes, width, way)
        case "distributed":
            return (active,)
        case _:
            return active, addresses(lanes, width)
