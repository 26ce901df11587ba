"""Access patterns of shared memory, and nothing else: tiles written and read pass after pass."""

LADDER = (
    "setRowReadRow",
    "setRowReadRowDyn",
    "setRowReadRowPad",
    "setRowReadRowDynPad",
    "setColReadCol",
    "setColReadColDyn",
    "setColReadColPad",
    "setColReadColDynPad",
    "setRowReadCol",
    "setRowReadColDyn",
    "setRowReadColPad",
    "setRowReadColDynPad",
    "setColReadRow",
    "setColReadRowDyn",
    "setColReadRowPad",
    "setColReadRowDynPad",
    "parallelAccess",
    "serialAccess",
    "broadcastAccess",
    "strided",
)
"""The kernels in the order of the lesson, in which tables show them; others come after them."""
