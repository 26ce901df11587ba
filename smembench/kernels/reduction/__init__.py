"""Kernels of the reduction problem."""

LADDER = (
    "readGmem",
    "sumLoop",
    "sumDivergent",
    "sumInterleaved",
    "sumSequential",
    "sumFirstAdd",
    "sumUnrolled",
    "sumCoarsened",
    "sumShuffled",
    "sumVectorized",
    "sumPersistent",
)
"""The kernels in the order of the lesson, in which tables show them; others come after them."""
