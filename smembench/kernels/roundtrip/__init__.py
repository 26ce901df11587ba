"""Kernels of the roundtrip problem."""

LADDER = (
    "addOne",
    "addOnePageable",
    "addOnePinned",
    "addOneDevice",
)
"""The kernels in the order of the lesson, in which tables show them; others come after them."""
