"""Kernels of the matmul problem."""

LADDER = (
    "cpu",
    "naive",
    "tiled",
    "tiledHalf",
    "MatMulKernel",
    "MatMul",
    "interchanged",
    "tiled1D",
    "tiled2D",
    "vectorized",
    "doubleBuffered",
    "warpTiled",
    "unrolled",
    "interleaved",
    "tiled16x8",
    "slicedK",
    "slicedK12x6",
    "serpentine",
    "serpentine16x8",
    "streamK",
    "wgmma",
    "wgmmaSpilled",
    "wgmmaSpecialized",
    "wgmmaPersistent",
)
"""The kernels in the order of the lesson, in which tables show them; others come after them."""
