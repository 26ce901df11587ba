"""The cluster of a launch: as the kernel was compiled for it, or as the launch gives it."""

from __future__ import annotations

from math import prod

from smembench.explain.ptx.program import PtxKernel
from smembench.launches.dimensions import Dimensions, as_text, check_cluster
from smembench.launches.ptx_entry import readable
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP

CAPABILITY = (9, 0)
"""The first compute capability with clusters."""

Sides = tuple[int, int, int]


def cluster_of(kernel: PtxKernel, given: Dimensions | None, grid: Sides, block: Sides, capability: str | None) -> Sides:
    """The blocks of a cluster along each axis, a single one without clusters.

    Args:
        kernel: may have a cluster of its own.
        given: the launch's, in 1 to 3 dimensions; None for none.
        grid: in blocks.
        block: in threads.
        capability: that the kernel is compiled for, if it is known.

    Raises:
        UsageError: for a cluster that is not the kernel's, is too large or does not divide the grid, and one that is
            missing; and for a kernel whose grid counts clusters.
    """
    x, y, z = (*(_given(kernel, given) or kernel.cluster or ()), 1, 1, 1)[:3]
    text = f"cluster {as_text(given or (x, y, z))}"
    if kernel.cluster not in (None, (x, y, z)):
        own = as_text(kernel.cluster or ())
        raise UsageError(f"{text}: {readable(kernel.name)} is compiled for clusters of {own}; leave it out")
    check_cluster(text, grid, given or (x, y, z))
    if x * y * z > kernel.most_blocks:
        most = f"the kernel is compiled for at most {kernel.most_blocks} (.maxclusterrank)"
        raise UsageError(f"{text}: has {x * y * z} blocks; {most}")
    if x * y * z == 1:
        return x, y, z
    if prod(block) % WARP:
        raise UsageError(
            f"{text}: blocks of {prod(block)} threads are not traced in clusters; give a multiple of {WARP}"
        )
    if capability is not None and tuple(map(int, capability.split("."))) < CAPABILITY:
        raise UsageError(f"{text}: compute capability {capability} has no clusters; give --cc 9.0 or later")
    return x, y, z


def _given(kernel: PtxKernel, given: Dimensions | None) -> Dimensions | None:
    """The launch's cluster, if it may have one and has one where it must."""
    name = readable(kernel.name)
    if kernel.blocks_are_clusters:
        raise UsageError(
            f"{name}: its grid counts clusters (.blocksareclusters), which is not traced; compile it with "
            "__cluster_dims__ in place of __block_size__"
        )
    if given is None and kernel.cluster is None and kernel.explicit_cluster:
        raise UsageError(f"{name}: is launched in clusters; give their blocks, as in --cluster 2")
    return given
