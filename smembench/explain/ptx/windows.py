"""The shared memory of a cluster's blocks: each has its own, and reaches the others' by addresses of ``mapa``.

An address below ``WINDOW`` is one of the thread's own block, as in a kernel without clusters. Those of the block of
rank r, which mean the same in every block, begin at ``(r + 1) * WINDOW`` (PTX ISA, "Distributed Shared Memory").
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smembench.explain.ptx.operation import Array
from smembench.explain.requests import NOWHERE, Integers

WINDOW = 1 << 24
"""Bytes of the addresses of a block, more than it can have of shared memory."""
GENERIC = 1 << 56
"""The offset of shared memory among generic addresses."""
_ALIGNMENT = 1024
_WIDEST = 16
"""Bytes of an access."""


class Windows:
    """The placement of the blocks' shared memory in that of the cluster, ``pitch`` bytes apart.

    Args:
        size: bytes of a block.
        threads: of the cluster.
        blocks: of the cluster; for a single one addresses are left as they are.
    """

    def __init__(self, size: int, threads: int, blocks: int) -> None:
        self.size, self.blocks = size, blocks
        self.pitch = size if blocks == 1 else -(-(size + _WIDEST) // _ALIGNMENT) * _ALIGNMENT
        self.ranks = np.arange(threads) // max(threads // blocks, 1)

    def remote(self, addresses: Integers) -> Any:
        """A mask of the addresses, one by thread, that are in the memory of another block than the thread's."""
        windows = addresses % GENERIC // WINDOW
        return (windows != 0) & (windows != self.ranks + 1)

    def in_cluster(self, addresses: Integers) -> Integers:
        """Addresses, one by thread in the last dimension, as places in the memory of the cluster.

        ``NOWHERE`` stays, and stands for what lies outside of every block.
        """
        if self.blocks == 1:
            return addresses
        windows, offsets = addresses // WINDOW, addresses % WINDOW
        blocks = np.where(windows == 0, self.ranks, windows - 1)
        inside = (addresses >= 0) & (blocks < self.blocks) & (offsets < self.size)
        return np.where(inside, blocks * self.pitch + offsets, NOWHERE)

    def mapped(self, address: Array, rank: Array) -> Array:
        """``mapa``: the address in the block of a rank; of unsigned numbers."""
        if self.blocks == 1 and not np.any(rank):
            return address
        kind = address.dtype.type
        within = address & kind(min(GENERIC - 1, np.iinfo(address.dtype).max))
        return address - within + within % kind(WINDOW) + (rank.astype(address.dtype) + kind(1)) * kind(WINDOW)

    def rank_of(self, address: Array) -> Array:
        """``getctarank``: the rank of the block whose memory an address is in."""
        windows = address.astype(np.int64) % GENERIC // WINDOW
        own = self.ranks if self.blocks > 1 else 0
        return np.asarray(np.where(windows == 0, own, windows - 1)).astype(np.uint32)

    def is_shared(self, address: Array, *, of_cluster: bool) -> Any:
        """``isspacep``: whether a generic address is one of shared memory, of the own block unless ``of_cluster``."""
        inside = np.asarray(address.astype(np.int64) // GENERIC == 1)
        own = of_cluster or self.blocks == 1
        return inside if own else inside & ~self.remote(address.astype(np.int64))
