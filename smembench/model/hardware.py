"""What every NVIDIA GPU since compute capability 5.0 has alike."""

WARP = 32
"""Threads of a warp, its lanes, whose requests memory serves together."""

BANKS = 32
"""Banks of shared memory that can each serve one word in one wavefront."""

WORD_BYTES = 4
"""Bytes of a word, the width of a bank."""

WAVEFRONT_BYTES = BANKS * WORD_BYTES
"""Bytes that the banks of a multiprocessor deliver in one wavefront, and so in one clock: a word each."""

STATIC_SHARED_BYTES = 48 * 1024
"""Shared memory of a block at most, unless it is dynamic and the launch opts in to more."""

EVENT_NOISE_MS = 1e-4
"""Standard deviation of what event pairs add to a round's median, since their readings switch between two levels for
about a second at a time (results/reference/notes/timing.md)."""

SECTOR_BYTES = 32
"""Bytes of a sector, the unit in which L1 asks L2, and L2 asks memory."""
