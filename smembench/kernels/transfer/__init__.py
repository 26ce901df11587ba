"""Kernels of the transfer problem."""

LADDER = (
    "hostCopy",
    "h2dPageable",
    "h2dPinned",
    "d2hPageable",
    "d2hPinned",
)
"""The kernels in the order of the lesson, in which tables show them; others come after them."""
