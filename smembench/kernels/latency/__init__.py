"""Kernels of the latency problem."""

LADDER = (
    "sharedChain",
    "globalChain",
)
"""The kernels in the order of the lesson, in which tables show them; others come after them."""
