"""On a real GPU: the contract of every CUDA kernel."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from types import ModuleType

import pytest

from programs import case_of, cuda_kernel, dtypes_of, first_dtype, numba_kernel
from smembench.devices.cuda import CudaDevice
from smembench.devices.cuda_description import why_unusable
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul import warp_groups
from smembench.kernels.matmul.cuda import few_rows_clustered, wgmma_clustered, wgmma_overlapped, wgmma_stored
from smembench.kernels.matmul.tile_choice import SHARED, SHARING, Form
from smembench.kernels.matmul.warp_groups import Tile
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import GpuKernel
from smembench.model.case import BY_COLUMNS, BY_ROWS, Block, Case
from smembench.model.formats import FLOAT8, HALVES, TF32
from smembench.toolchains.registry import compilers

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.untimed,
    pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable())),
]

MISSING = [toolchain.name for toolchain in compilers() if not toolchain.installed]
CUDA = [kernel for kernel in registry.kernels() if kernel.kind == "cuda" and kernel.compiler not in MISSING]
SHAPES = [(1, 1, 1), (33, 65, 17), (1000, 517, 300), (1000, 536, 304), (128, 4097, 64)]
RAGGED = [(33, 65, 17), (1000, 536, 304)]
"""Of these without and with aligned rows, to 16 bytes of any type, for other element types and blocks."""
STRIDED = [
    ((33, 65, 17), 66),
    ((1000, 517, 300), 520),
    ((1000, 536, 300), 536),
    ((128, 4097, 64), 4161),
    ((100, 200, 300), 500),
]
"""Sizes and strides: rows apart by one element, to be aligned, not at all, by many, and between columns."""
SIZES = len(SHARED) // len(SHARING)
IN_TURN = [SHARED[number + number % len(SHARING) * SIZES] for number in range(SIZES)]
"""Tiles of every size, in clusters of every kind by turns."""
TILES = [
    *((wgmma_stored, tile) for tile in warp_groups.TILES),
    *((wgmma_overlapped, tile) for tile in wgmma_overlapped.HALVED),
    *((wgmma_clustered, tile) for tile in IN_TURN),
]
NAMES = [
    f"{module.KERNEL.name} {tile.rows}x{tile.columns} {'ping-pong' if tile.ping_pong else tile.swapped}{tile.sharing}"
    for module, tile in TILES
]
OTHERS = [("bfloat16", BY_COLUMNS), (TF32, BY_COLUMNS), (FLOAT8, BY_COLUMNS)]
TALLEST = {
    (tile.columns, tile.swapped): tile for tile in IN_TURN if not tile.ping_pong and tile.columns % 32 == 0
}.values()
"""Of each width that B may have by rows as well, the tallest; ping-pong tiles have neighbouring rows."""
FORMS = [
    few_rows_clustered.filled(Tile(rows, columns, share_b=shared), split)
    for rows, columns, split, shared in (
        *((rows, columns, 1, 1) for rows, columns in ((8, 56), (16, 64), (40, 32), (64, 32), (72, 96), (128, 224))),
        *((rows, columns, split, 1) for split in (2, 3, 4) for rows, columns in ((24, 64), (64, 96), (120, 32))),
        *((rows, columns, 1, 2) for rows, columns in ((8, 64), (48, 128), (64, 96), (128, 32), (64, 256))),
        *((rows, columns, 1, 4) for rows, columns in ((24, 64), (64, 136), (128, 96))),
    )
]
BLOCKS = [Block(32, 32), Block(16, 16), Block(32, 8), Block(8, 32), Block(64, 4)]


def verify(gpu: CudaDevice, case: Case, launches: int = 1) -> None:
    """Check the result of each launch on a poisoned output."""
    problem, kernel = PROBLEMS[case.problem], registry.kernel_of(case)
    inputs = problem.inputs(case, seed=1)
    reference = problem.reference(case, inputs, kernel.computes)
    prepared = gpu.prepare(case, kernel, problem, inputs)
    for _ in range(launches):
        prepared.poison()
        prepared.launch()
        verdict = problem.check(case, reference, prepared.output())
        assert verdict.passed, f"{case.id}: {verdict.detail}"
    prepared.close()


@pytest.mark.parametrize("kernel", CUDA, ids=lambda k: f"{k.problem}-{k.compiler}-{k.name}")
def test_every_kernel_is_right_on_ragged_sizes(gpu: CudaDevice, kernel: Kernel) -> None:
    capability = gpu.info.compute_capability
    limit = gpu.limits().max_shared_bytes or 0
    blocks = list(dict.fromkeys([*kernel.default_blocks, *BLOCKS])) if kernel.blocks else [None]
    done = 0
    # Every element type and every block, but not each with each: a compilation takes longer than a launch.
    dtypes = dtypes_of(kernel)
    compiled = list(dict.fromkeys([*product(dtypes, blocks[:1]), *product(dtypes[:1], blocks)]))
    for (dtype, block), (m, n, k) in [*product(compiled[:1], SHAPES), *product(compiled[1:], RAGGED)]:
        case = case_of(kernel, m, n, k, dtype, block)
        if kernel.refusal(case, capability) or kernel.static_bytes(case) > limit:
            continue
        verify(gpu, case)
        done += 1
    assert done or kernel.needs


@pytest.mark.parametrize("name", ["serpentine", "serpentine16x8", "streamK", "slicedK12x6"])
def test_what_is_left_over_by_whole_tiles_is_right(gpu: CudaDevice, name: str) -> None:
    kernel = cuda_kernel("matmul", name)
    (block,) = kernel.default_blocks
    down, across = block.y * kernel.results[1], block.x * kernel.results[0]
    # Few of each, since every width of an access is compiled anew.
    shapes = [("float32", 1, 1, 257), ("float32", 8, 4, 1000), ("float32", 0, 3, 1), ("float64", 1, 2, 99)]
    for dtype, rows, columns, k in shapes:
        case = case_of(kernel, 3 * down + rows, 5 * across + columns, k, dtype)
        if kernel.refusal(case):
            continue
        assert "a few left over" in numba_kernel(case).variant
        verify(gpu, case)


@pytest.mark.parametrize(
    ("name", "m", "n", "k"),
    [
        ("streamK", 141, 139, 40_001),
        ("streamK", 2500, 1000, 700),
        ("splitK", 141, 139, 40_001),
        ("splitK", 512, 512, 512),
        ("splitK", 64, 1000, 4096),
    ],
)
def test_blocks_hand_over_at_every_launch(gpu: CudaDevice, name: str, m: int, n: int, k: int) -> None:
    case = Case("matmul", name, "cuda:0", "float32", m, n, k, Block(16, 16))
    program = numba_kernel(case)
    assert prod(program.on(gpu.info.sm_count or 1).grid) > prod(program.grid)
    verify(gpu, case, launches=3)


@pytest.mark.parametrize("dtype", dtypes_of(cuda_kernel("reduction", "sumPersistent")))
def test_a_persistent_grid_goes_round_more_than_once(gpu: CudaDevice, dtype: str) -> None:
    case = case_of(cuda_kernel("reduction", "sumPersistent"), 1, 2**26, dtype=dtype)
    program = numba_kernel(case)
    assert prod(program.grid) > 2 * prod(program.on(gpu.info.sm_count or 1).grid)
    verify(gpu, case)


@pytest.mark.parametrize("name", ["wgmmaPersistent", "wgmmaStored", "wgmmaOverlapped", "wgmmaClustered"])
@pytest.mark.parametrize(
    ("dtype", "b_layout"), [*product(HALVES, [BY_ROWS, BY_COLUMNS]), (TF32, BY_COLUMNS), (FLOAT8, BY_COLUMNS)]
)
def test_warp_groups_compute_one_tile_after_another(gpu: CudaDevice, name: str, dtype: str, b_layout: str) -> None:
    """Ragged in all three: bands that are not full, and tiles over every edge."""
    case = Case("matmul", name, "cuda:0", dtype, 5000, 5008, 1040, b_layout=b_layout)
    kernel = registry.kernel_of(case)
    if reason := kernel.refusal(case, gpu.info.compute_capability):
        pytest.skip(reason)
    program = kernel.build(case)
    assert isinstance(program, GpuKernel)
    assert prod(program.grid) > 2 * prod(program.on(gpu.info.sm_count or 1).grid)
    verify(gpu, case, launches=3)


@pytest.mark.parametrize(
    ("module", "tile", "dtype", "b_layout"),
    [
        *((module, tile, "bfloat16", BY_COLUMNS if tile.columns % 32 else BY_ROWS) for module, tile in TILES),
        *((module, tile, *OTHERS[number % len(OTHERS)]) for number, (module, tile) in enumerate(TILES)),
    ],
    ids=2 * NAMES,
)
def test_tiles_of_every_size_are_right(
    gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch, module: ModuleType, tile: Tile, dtype: str, b_layout: str
) -> None:
    """By rows, if it can be, and in another type or layout by turns; those whose rows lie apart follow below."""
    m, n = 19 * tile.rows - 46, 9 * tile.columns - 24  # more than the blocks at once
    case = Case("matmul", module.KERNEL.name, "cuda:0", dtype, m, n, 1008, b_layout=b_layout)
    if reason := module.KERNEL.refusal(case, gpu.info.compute_capability):
        pytest.skip(reason)
    monkeypatch.setattr(module, "tile_of", tile.of)
    verify(gpu, case)


@pytest.mark.parametrize(
    "form", FORMS, ids=lambda form: f"{form.tile.rows}x{form.tile.columns} {form.split} {form.tile.share_b}"
)
@pytest.mark.parametrize(
    ("dtype", "b_layout"), [("float16", BY_ROWS), ("bfloat16", BY_COLUMNS), (TF32, BY_COLUMNS), (FLOAT8, BY_COLUMNS)]
)
def test_every_form_of_few_rows_is_right(
    gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch, form: Form, dtype: str, b_layout: str
) -> None:
    """At every launch, over two rows of tiles or pairs, of which the last has fewer rows and columns."""
    if b_layout == BY_ROWS and form.tile.columns % 32:
        pytest.skip("pieces of B have 32 columns")
    m, n = 2 * form.tile.share_b * form.tile.rows - 5, 5 * form.tile.columns - 24
    case = Case("matmul", "fewRowsClustered", "cuda:0", dtype, m, n, 2096, b_layout=b_layout)
    if reason := registry.kernel_of(case).refusal(case, gpu.info.compute_capability):
        pytest.skip(reason)
    monkeypatch.setattr(few_rows_clustered, "form_of", lambda case: form._replace(tile=form.tile.of(case)))
    verify(gpu, case, launches=3)


@pytest.mark.parametrize("b_layout", [BY_ROWS, BY_COLUMNS])
@pytest.mark.parametrize(("dtype", "k"), [("bfloat16", 1000), ("float16", 1048), (TF32, 516), (FLOAT8, 1040)])
@pytest.mark.parametrize("apart", [2, 4, 8])
@pytest.mark.parametrize("tile", TALLEST, ids=lambda tile: f"{tile.rows}x{tile.columns} {tile.swapped}{tile.sharing}")
def test_tiles_whose_rows_lie_apart_are_right(
    gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch, tile: Tile, apart: int, dtype: str, k: int, b_layout: str
) -> None:
    case = Case("matmul", "wgmmaClustered", "cuda:0", dtype, 8 * (tile.rows // apart + 3), 1032, k, b_layout=b_layout)
    if reason := registry.kernel_of(case).refusal(case, gpu.info.compute_capability):
        pytest.skip(reason)
    monkeypatch.setattr(wgmma_clustered, "tile_of", replace(tile, apart=apart).of)
    verify(gpu, case)


@pytest.mark.parametrize(("module", "tile"), TILES, ids=NAMES)
@pytest.mark.parametrize("dtype", ["float16", TF32])
def test_results_leave_a_buffer_before_those_of_the_next_tile_come(
    gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch, module: ModuleType, tile: Tile, dtype: str
) -> None:
    """Several tiles per block, of one step along k, so that the TMA may still read the last one's results."""
    case = Case("matmul", module.KERNEL.name, "cuda:0", dtype, 90_000, tile.columns, 8, b_layout=BY_COLUMNS)
    if reason := module.KERNEL.refusal(case, gpu.info.compute_capability):
        pytest.skip(reason)
    monkeypatch.setattr(module, "tile_of", tile.of)
    verify(gpu, case, launches=5)


@pytest.mark.parametrize("dtype", PROBLEMS["reduction"].dtypes)
def test_a_grid_of_the_gpus_size_adds_up_all_elements_at_every_launch(gpu: CudaDevice, dtype: str) -> None:
    case = Case("reduction", "sumPersistent", "cuda:0", dtype, 1, 2**26 + 3, None, Block(256, 1))
    program = numba_kernel(case)
    assert prod(program.grid) > 2 * prod(program.on(gpu.info.sm_count or 1).grid)
    verify(gpu, case, launches=3)


@pytest.mark.parametrize(
    "kernel", [k for k in CUDA if k.problem == "matmul" and k.strided], ids=lambda k: f"{k.name}-{k.compiler}"
)
def test_products_of_sub_matrices_touch_nothing_around_them(gpu: CudaDevice, kernel: Kernel) -> None:
    for (m, n, k), stride in STRIDED:
        block = None if kernel.default_blocks else Block(16, 16)
        case = case_of(kernel, m, n, k, first_dtype(kernel), block, stride)
        if not kernel.refusal(case):
            verify(gpu, case)
