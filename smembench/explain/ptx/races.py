"""Races in global memory: only where no instruction of the kernel may order the threads that could race."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from smembench.explain.mistakes import Made, Mistake, in_global_memory
from smembench.explain.ptx.program import Instruction, PtxKernel

_ORDERING = ("fence", "membar", "griddepcontrol", "call")
_QUALIFIERS = frozenset(("volatile", "acquire", "release", "acq_rel", "relaxed", "mmio", "cluster", "grid"))
"""Modifiers of instructions that may order accesses of different threads."""


def races(
    kernel: PtxKernel, blocks: Mapping[str, Sequence[Made]], *, in_clusters: bool, of_python: bool
) -> list[Mistake]:
    """The races of blocks, and of the warps of each.

    Args:
        kernel: the kernel.
        blocks: by name, as in ``block (1, 0, 0)``, the accesses to global memory.
        in_clusters: whether blocks run in clusters, whose barriers order them.
        of_python: whether only races of blocks count: all threads of a Triton block may load what one of them uses.
    """
    ordering = [given for given in kernel.code if _orders(given)]
    if in_clusters or not all(map(_is_of_block, ordering)):
        return []
    return in_global_memory(_candidates([*blocks.values()]), [*blocks], within=not (ordering or of_python))


def _candidates(blocks: Sequence[Sequence[Made]]) -> list[list[Made]]:
    """The accesses of blocks to arrays that one of them stores to, and one accesses in another line or way as well."""
    sites = {(made.site.array, made.site.kind, made.site.line) for block in blocks for made in block}
    several = Counter(array for array, _, _ in sites)
    stored = {array for array, kind, _ in sites if kind == "store" and several[array] > 1}
    return [[made for made in block if made.site.array in stored] for block in blocks]


def _orders(given: Instruction) -> bool:
    """True if an instruction may order accesses to global memory of different threads, as barriers do."""
    atomic = given.root in ("atom", "red") and given.space in ("global", "generic")
    return atomic or given.root in _ORDERING or not _QUALIFIERS.isdisjoint(given.parts)


def _is_of_block(given: Instruction) -> bool:
    """True if an instruction that orders threads cannot order those of different blocks."""
    return given.space == "shared" or "cta" in given.parts
