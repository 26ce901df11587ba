"""Patterns without a tile: threads in a line over 1024 elements."""

from math import gcd

from smembench.kernels.access.passes import Layout
from smembench.kernels.access.problem import tiles
from smembench.model.case import Case
from smembench.model.hardware import WARP

_ELEMENTS = 1024
"""32 lanes at a stride of 32, the longest."""


def strided(stride: int) -> Layout:
    """Thread t's element is t · ``stride``, wrapped round and one further each time it would meet another's.

    That is after 1024 / gcd(stride, 1024) threads, a multiple of the warp: the lanes of a warp lie ``stride`` apart.
    """
    return Layout(_ELEMENTS // gcd(stride, _ELEMENTS), stride, 1, _ELEMENTS)


def first_of_warp(case: Case) -> Layout:
    """The element of the warp's first thread where threads have theirs one after the other."""
    return Layout(WARP, 0, WARP, _ELEMENTS)


def apart(case: Case) -> Layout:
    """Elements one after the other: a warp's lie in 32 banks."""
    return strided(1)


def in_one_bank(case: Case) -> Layout:
    """Elements 32 apart: a warp's lie in one bank."""
    return strided(WARP)


def by_stride(case: Case) -> Layout:
    """Elements as far apart as the case says, one after the other where it does not."""
    return strided(case.stride or 1)


def line_tiles(case: Case) -> int:
    """Elements of a block's tiles together."""
    return tiles(case.dtype) * _ELEMENTS
