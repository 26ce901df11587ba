"""The transposes of the ladder: what the model and the compiler say of them. Their results: tests/simulator."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from smembench.axes import Block
from smembench.case import Case
from smembench.explain.analysis import explain
from smembench.explain.trace import trace
from smembench.kernels import registry
from smembench.kernels.vector import lanes
from smembench.problems import PROBLEMS
from smembench.problems.base import ITEMSIZE

Ptx = Callable[[Case], str]

DTYPES = PROBLEMS["transpose"].dtypes
VECTORIZED = ("transposeVectorized", "transposeGrouped", "transposeStreamed")
CLIMBED = ("transposeCoarsened", "transposeSwizzled", *VECTORIZED)


def kernel(name: str) -> registry.Kernel:
    found = registry.find("transpose", name, "cuda")
    assert found is not None
    return found


def case(name: str, dtype: str = "float32", n: int = 4096, m: int | None = None, block: Block | None = None) -> Case:
    pad = {None: None, False: 0, True: 1}[kernel(name).pad]
    block = block or kernel(name).default_blocks[0]
    return Case("transpose", name, "cuda:0", dtype, m or n, n, None, block, pad)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("name", "block"), [(name, block) for name in CLIMBED for block in kernel(name).default_blocks]
)
def test_every_step_is_coalesced_and_free_of_conflicts(name: str, block: Block, dtype: str) -> None:
    explained = explain(case(name, dtype, block=block))
    assert {access.efficiency for access in explained.memory} == {1.0}
    stores, loads = explained.degree("store"), explained.degree("load")
    # Half of the columns of a float16 tile padded by one element begin in the upper half of a word.
    assert (stores, loads) == (1.0, 1.5 if (name, dtype) == ("transposeCoarsened", "float16") else 1.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [Block(8, 8), Block(16, 16)])
def test_a_size_without_aligned_rows_is_free_of_conflicts_too(dtype: str, block: Block) -> None:
    explained = explain(case("transposeVectorized", dtype, 4095, block=block))
    assert (explained.degree("store"), explained.degree("load")) == (1.0, 1.0)
    assert {access.place.width for access in explained.memory} == {ITEMSIZE[dtype]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VECTORIZED)
def test_a_trace_sees_accesses_of_sixteen_bytes(name: str, dtype: str) -> None:
    traced = trace(kernel(name), case(name, dtype, 256))
    widths = {(place.space, place.kind, place.width) for place in {request.place for request in traced.requests}}
    assert widths == {
        ("global", "load", 16),
        ("global", "store", 16),
        ("shared", "store", 16),
        ("shared", "load", ITEMSIZE[dtype]),
    }
    (place,) = {request.place for request in traced.requests if request.place.array == "out"}
    assert "store(out, " in traced.source(place.line)


@pytest.mark.parametrize(("rows", "columns"), [(4100, 1000), (1000, 4100), (4160, 72)])
def test_the_order_of_blocks_does_not_change_what_they_cost(rows: int, columns: int) -> None:
    plain, grouped = (explain(case(name, m=rows, n=columns)) for name in ("transposeVectorized", "transposeGrouped"))
    for kind in ("load", "store"):
        assert grouped.sectors(kind) == plain.sectors(kind)


@pytest.mark.parametrize(
    ("columns", "rows", "chosen"),
    [
        (4096, 4096, "transpose_vectorized"),
        (4100, 4, "transpose_vectorized"),
        (4095, 4096, "transpose_swizzled"),
        (4096, 4098, "transpose_swizzled"),
    ],
)
def test_sizes_choose_between_vectors_and_elements(columns: int, rows: int, chosen: str) -> None:
    for name in VECTORIZED:
        program = kernel(name).build(case(name, n=columns, m=rows))
        assert program.function.__name__ == chosen
        assert program.grid == (-(-columns // 64), -(-rows // 64))


@pytest.mark.parametrize(
    ("name", "dtype", "block", "reason"),
    [
        ("transposeCoarsened", "float32", Block(32, 5), "height divides its width"),
        ("transposeSwizzled", "float32", Block(24, 8), "power of two"),
        ("transposeSwizzled", "float32", Block(16, 32), "height divides its width"),
        ("transposeVectorized", "float32", Block(4, 8), "at least 8 threads across"),
        ("transposeVectorized", "float16", Block(16, 4), "for float16, a height that 8 divides"),
        ("transposeVectorized", "float64", Block(8, 32), "divides 16"),
        ("transposeGrouped", "float32", Block(24, 8), "power of two"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(name: str, dtype: str, block: Block, reason: str) -> None:
    refused = kernel(name).refuse(case(name, dtype, block=block))
    assert refused is not None
    assert refused.startswith(f"{name} needs ")
    assert reason in refused
    assert refused.endswith(f"not {block}")


def test_blocks_that_fit_have_whole_passes_by_vectors_and_by_elements() -> None:
    sides = [2**power for power in range(8)]
    for dtype in DTYPES:
        for block in (Block(x, y) for x in sides for y in sides):
            chosen = case("transposeVectorized", dtype, block=block)
            if kernel("transposeVectorized").refuse(chosen) is None:
                side = lanes(dtype) * block.x
                threads = block.x * block.y
                assert (threads % 32, side % block.y, side * side % threads, threads % side) == (0, 0, 0, 0)


def accesses(text: str) -> Counter[str]:
    """Memory instructions of PTX by space and width, without types: ``ld.global.v4`` or ``st.shared``."""
    found = re.findall(r"\b(ld|st)\.(global|shared|local)((?:\.cs)?(?:\.v4)?)", text)
    return Counter(f"{kind}.{space}{width}" for kind, space, width in found)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", VECTORIZED)
def test_the_compiler_makes_accesses_of_128_bits(ptx: Ptx, name: str, dtype: str) -> None:
    text = ptx(case(name, dtype))
    hint = ".cs" if name == "transposeStreamed" else ""
    found = accesses(text)
    assert {access for access in found if "global" in access} == {f"ld.global{hint}.v4", f"st.global{hint}.v4"}
    assert found["st.shared.v4"] == found[f"ld.global{hint}.v4"]
    assert not found["st.shared"]
    assert ".local" not in text


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("name", "n"), [("transposeCoarsened", 4096), ("transposeVectorized", 4095)])
def test_the_compiler_unrolls_the_passes_of_single_elements(ptx: Ptx, name: str, n: int, dtype: str) -> None:
    text = ptx(case(name, dtype, n))
    found = accesses(text)
    assert set(found) == {"ld.global", "st.shared", "ld.shared", "st.global"}
    # Several loads a pass over the code: that many are in flight at once.
    assert found["ld.global"] == found["st.shared"] > 1
    assert ".local" not in text
