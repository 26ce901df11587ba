"""The cluster of a launch: as the kernel was compiled for it, or as the launch gives it."""

from __future__ import annotations

from math import prod

from smembench.explain.foreign import Dimensions, as_text
from smembench.explain.ptx.program import PtxKernel, readable
from smembench.model.errors import UsageError
from smembench.model.hardware import WARP

MOST_BLOCKS = 16
"""Of a cluster; more than 8 only of a kernel that allows a size that is not portable."""
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
            missing.
    """
    own = kernel.cluster
    if given is None and own is None:
        if kernel.explicit_cluster:
            raise UsageError(f"{readable(kernel.name)}: is launched in clusters; give their blocks, as in --cluster 2")
        return 1, 1, 1
    if given is not None and not (1 <= len(given) <= 3 and min(given) >= 1):
        raise UsageError(f"cluster {as_text(given)}: give 1 to 3 dimensions of at least 1, such as 2 or 2x1x1")
    x, y, z = (*(given or own or ()), 1, 1)[:3]
    text = f"cluster {as_text(given or (x, y, z))}"
    if own is not None and own != (x, y, z):
        raise UsageError(f"{text}: {readable(kernel.name)} is compiled for clusters of {as_text(own)}; leave it out")
    _check(text, (x, y, z), kernel.most_blocks)
    if prod((x, y, z)) == 1:
        return x, y, z
    for axis, blocks, size in zip("xyz", grid, (x, y, z), strict=True):
        if blocks % size:
            raise UsageError(
                f"{text}: does not divide the grid's {blocks} blocks along {axis}; give a multiple of {size} there"
            )
    if prod(block) % WARP:
        raise UsageError(
            f"{text}: blocks of {prod(block)} threads are not traced in clusters; give a multiple of {WARP}"
        )
    if capability is not None and tuple(map(int, capability.split("."))) < CAPABILITY:
        raise UsageError(f"{text}: compute capability {capability} has no clusters; give --cc 9.0 or later")
    return x, y, z


def _check(text: str, cluster: Sides, most: int) -> None:
    """Whether a GPU and the kernel take a cluster of this size."""
    count = prod(cluster)
    if count > min(most, MOST_BLOCKS):
        if most < MOST_BLOCKS:
            raise UsageError(f"{text}: has {count} blocks; the kernel is compiled for at most {most} (.maxclusterrank)")
        why = f"a GPU takes at most {MOST_BLOCKS}, and every GPU with clusters 8"
        raise UsageError(f"{text}: has {count} blocks; {why}")
