"""Random products for the kernels that need tensor cores or asynchronous copies, held to float64."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from programs import NUMBA, assert_right, case_of, dtypes_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import GpuKernel
from smembench.model.case import Case
from smembench.model.hardware import STATIC_SHARED_BYTES
from smembench.model.problem import ITEMSIZE

if TYPE_CHECKING:
    from smembench.model.problem import Array

STEPS = [kernel for kernel in NUMBA if kernel.problem == "matmul" and kernel.needs]
SIZES_OF_TILES = {
    "wgmmaClustered": [
        (404, 72, 656),  # rows apart, without clusters
        (1629, 1352, 200),
        (1585, 2728, 200),
        (1027, 1824, 200),
        (481, 160, 984),  # four blocks share A
        (1457, 336, 1056),  # two share A
        (2082, 872, 904),  # four share B
        (1167, 424, 928),  # two share B
        (2381, 2960, 128),  # ping-pong, without clusters
        (1129, 2120, 984),  # ping-pong, two share B
        (3033, 1560, 360),  # by columns: 256 rows
        (3231, 392, 976),  # by columns: 80 columns, two share B
    ],
    "wgmmaOverlapped": [(34_000, 256, 328)],
}
"""By kernel, m, n and k: ragged products that take tiles and clusters of every kind, or several wide tiles each."""
TERMS, ELEMENTS = 2**27, 2**23
"""Most of a product and of a matrix, so that float64 takes milliseconds."""
STRIDES = (1040, 4097)
"""Rows that begin at multiples of 16 bytes, and rows that do not."""
PROGRAMS = 6
"""Most that a series of products compiles: compilers take longer than all else."""

Run = Callable[[Case], Callable[[tuple["Array", ...]], "Array"]]
"""What a case makes of inputs."""


def side(rng: random.Random) -> int:
    """Very short, at the edge of tiles, of no particular length, or long."""
    match rng.randrange(4):
        case 0:
            return rng.randint(1, 8)
        case 1:
            return rng.choice((8, 16, 32, 64, 128, 256)) * rng.randint(1, 4) + rng.randint(-1, 1)
        case 2:
            return rng.randint(1, 2000)
        case _:
            return rng.randint(1000, 50_000)


def drawn(rng: random.Random, kernel: Kernel, terms: int = TERMS) -> Case:
    """A product that the kernel takes or refuses; in at least half of them k is a multiple of 16 bytes, and so is n."""
    dtype = rng.choice(dtypes_of(kernel))
    units = (16 // ITEMSIZE[dtype],) * 2 + (2, 1)
    m = n = k = terms
    while m * n * k > terms or max(m * n, m * k, k * n) > ELEMENTS:
        m, n, k = (side(rng) for _ in range(3))
        n, k = (length + -length % rng.choice(units) for length in (n, k))
    strides = [stride for stride in STRIDES if max(n, k) <= stride <= ELEMENTS // max(m, k)] if kernel.strided else []
    block = rng.choice(kernel.default_blocks) if kernel.blocks else None
    case = case_of(kernel, m, n, k, dtype, block, rng.choice((None, *strides)))
    inputs = rng.choice(PROBLEMS["matmul"].distributions)
    return replace(case, inputs=inputs, b_layout=rng.choice(kernel.b_layouts))


def flags(case: Case) -> dict[str, str]:
    """A product's options of ``smembench matmul``."""
    names = ("kernel", "device", "dtype", "m", "n", "k", "stride", "block", "inputs", "b_layout", "compiler")
    return {name: str(value) for name in names if (value := getattr(case, name)) is not None}


def command(case: Case, seed: int) -> str:
    """What repeats a product on the same inputs."""
    given = {**flags(case), "seed": seed}
    return "smembench matmul " + " ".join(f"--{name.replace('_', '-')} {value}" for name, value in given.items())


def hold(kernel: Kernel, rng: random.Random, count: int, run: Run, terms: int = TERMS) -> None:
    """Hold so many random products to float64; those that are refused are not run, nor do they count.

    Inputs that prove little follow others of the same shape, as before a timing. The command of each product and a
    line of counts are printed.

    Raises:
        AssertionError: if a result is wrong, or if too many products were refused; the command printed last repeats it.
    """
    right = refused = 0
    programs: set[tuple[object, ...]] = set()
    for _ in range(1000 * count):
        if right == count:
            break
        case = drawn(rng, kernel, terms)
        if kernel.refusal(case) or kernel.static_bytes(case) > STATIC_SHARED_BYTES:
            refused += 1
            continue
        program = kernel.build(case)
        assert isinstance(program, GpuKernel)
        variant = (case.dtype, case.b_layout, case.block, case.stride, program.variant)
        if variant not in programs and len(programs) == PROGRAMS:
            continue
        programs.add(variant)
        seed = rng.randrange(2**31)
        print(command(case, seed))
        for item in dict.fromkeys((PROBLEMS["matmul"].tried_on(case), case)):
            assert_right(item, run(item), seed=seed)
        right += 1
    print(f"{kernel.name}: {right} products right, by {len(programs)} programs; {refused} refused")
    assert right == count, f"{refused} products refused, {right} right"
