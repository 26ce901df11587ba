"""Constants that all NVIDIA GPUs since compute capability 5.0 share, unless their names say whose they are."""

WARP = 32
"""Threads (lanes) per warp; memory serves their accesses as one request."""

MAX_THREADS = 1024
"""Most threads per block."""

BANKS = 32
"""Banks of shared memory; each serves one word per wavefront."""

WORD_BYTES = 4
"""Bytes per word, the width of a bank."""

WAVEFRONT_BYTES = BANKS * WORD_BYTES
"""Bytes that the banks of a multiprocessor deliver per wavefront, and so per clock: one word per bank."""

STATIC_SHARED_BYTES = 48 * 1024
"""Most shared memory per block, unless it is dynamic and the launch opts in to more."""

CONSTANT_BYTES = 64 * 1024
"""Constant memory of a program (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability")."""

REGISTER_BYTES = 4
"""Bytes per register."""

SM90_MULTIPROCESSORS = 132
"""Multiprocessors that the tiles of kernels for compute capability 9.0 are chosen for: those of its SXM modules. On
another number these kernels are right, too; other tiles may be faster there."""

EVENT_NOISE_MS = 1e-4
"""Standard deviation that event pairs add to a round's median: their readings switch between two levels for about a
second at a time (results/reference/notes/timing.md)."""

SECTOR_BYTES = 32
"""Bytes per sector, the unit of transfers between L1 and L2, and between L2 and memory."""

LINE_BYTES = 4 * SECTOR_BYTES
"""Bytes per line of the caches."""
