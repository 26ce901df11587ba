"""Kernels of the constant problem."""

LADDER = (
    "globalUniform",
    "globalDiverging",
    "sharedUniform",
    "sharedDiverging",
    "constantUniform",
    "constantDiverging",
)
"""The kernels in the order of the lesson, in which tables show them; others come after them."""
