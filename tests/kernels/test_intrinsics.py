"""Intrinsics that access memory: the Python body touches what the IR touches, in every lane, and computes the same."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowered import Access, Recorded, execute
from programs import NUMBA, case_of, first_dtype
from smembench.kernels.intrinsics.async_copy import copies_async, copy_element_async, copy_vector_async
from smembench.kernels.intrinsics.block_flags import accumulate
from smembench.kernels.intrinsics.declaration import TABLE
from smembench.kernels.intrinsics.fragments import copy_vectors, outer_product
from smembench.kernels.intrinsics.row_products import row_products
from smembench.kernels.intrinsics.vector import (
    copy_vector,
    load_pair,
    load_vector,
    load_vector_streaming,
    store_vector,
    store_vector_streaming,
)
from smembench.kernels.matmul.cuda.serpentine import Variant
from smembench.kernels.matmul.ragged import AT_ONCE, SIDE
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import uint32, uint64
from smembench.kernels.types import Matrix, Place
from smembench.model.case import Block
from smembench.model.problem import ITEMSIZE

types: Any = numba.types
U32, U64 = types.uint32, types.uint64
DTYPES = st.sampled_from(["float32", "float64"])


def array_of(dtype: str) -> Any:
    return types.Array(getattr(types, dtype), 1, "C")


def test_a_declaration_has_a_type_for_each_argument_of_the_body() -> None:
    """Also those of the intrinsics that kernels make for their constants."""
    for kernel in NUMBA:
        case = case_of(kernel, 256, 256, 256, first_dtype(kernel))
        kernel.build(case)
    assert len(TABLE) > 100
    for intrinsic in TABLE:
        assert len(intrinsic.arguments) == len(signature(intrinsic.function).parameters), intrinsic


class Both:
    """The same arrays for an intrinsic's body and for its IR; each notes what is accessed."""

    def __init__(self, dtype: str, **lengths: int) -> None:
        rng = np.random.default_rng(1)
        self.of_body: list[Access] = []
        self.of_ir: list[Access] = []
        contents = {name: rng.integers(-9, 9, length).astype(dtype) for name, length in lengths.items()}
        self.body = {name: Recorded(name, content, self.of_body) for name, content in contents.items()}
        self.ir = {name: Recorded(name, content, self.of_ir) for name, content in contents.items()}

    def accesses(self, *names: str) -> tuple[list[Access], list[Access]]:
        """Of some arrays, by the body and by the IR."""
        of_body, of_ir = ([access for access in result if access[1] in names] for result in (self.of_body, self.of_ir))
        assert of_body
        return of_body, of_ir

    def agree(self) -> None:
        for name, array in self.body.items():
            np.testing.assert_array_equal(array.contents, self.ir[name].contents)


@pytest.mark.parametrize("within", [True, False])
@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 20),
    k=st.integers(1, 40),
    apart=st.integers(1, 8),
    row=st.integers(0, 8),
    more=st.integers(0, 3),
    dtype=DTYPES,
)
def test_rows_are_multiplied_at_the_addresses_of_the_ir_and_beyond_k_it_loads_the_last_position_again(
    within: bool, rows: int, columns: int, k: int, apart: int, row: int, more: int, dtype: str
) -> None:
    """Every lane of a chunk: SIDE of them have a column each, and every ``apart``-th position along k."""
    lda, ldb, row = k + more, columns + more, min(row, rows - 1)
    add, add_one = row_products(SIDE, AT_ONCE, apart, within=within), row_products(SIDE, 1, 1, within=True)
    kinds = [array_of(dtype), *[(array_of(dtype), U32, U32, U32)] * 2, (U32, U32), U64]

    def operands(arrays: dict[str, Recorded], lane: int) -> tuple[Recorded, Matrix, Matrix, Place]:
        A = Matrix(arrays["A"], uint32(rows), uint32(k), uint32(lda))
        B = Matrix(arrays["B"], uint32(k), uint32(columns), uint32(ldb))
        return arrays["sums"], A, B, Place(uint32(row), uint32(min(lane, columns - 1)))

    for at in range(apart):
        positions = [at + i * apart for i in range(AT_ONCE)]
        if (max(positions) if within else at) >= k:
            continue
        both, loaded = Both(dtype, sums=SIDE, A=rows * lda, B=k * ldb), Both(dtype, sums=SIDE, A=rows * lda, B=k * ldb)
        for lane in range(SIDE):
            add(*operands(both.body, lane), uint64(at))
            execute(add, kinds, (*operands(both.ir, lane), at))
            for position in positions:
                add_one(*operands(loaded.body, lane), uint64(min(position, k - 1)))
        of_body, of_ir = both.accesses("A", "B")
        assert of_ir == [access for access in loaded.of_body if access[1] in ("A", "B")]
        inside = len([position for position in positions if position < k])
        assert len(of_body) * AT_ONCE == len(of_ir) * inside
        assert set(of_body) <= set(of_ir)
        both.agree()


@given(
    block=st.sampled_from([Block(8, 8), Block(16, 16), Block(8, 32)]),
    vectors=st.booleans(),
    begun=st.tuples(st.integers(0, 8), st.integers(1, 4)),
    dtype=DTYPES,
)
def test_copies_of_tiles_go_where_the_ir_copies(
    block: Block, vectors: bool, begun: tuple[int, int], dtype: str
) -> None:
    tiling = Tiling(block, dtype, depth=16, warps=True)
    width = tiling.vector if vectors else 1
    first, count = begun
    some = [copy[1:] for copy in tiling.copies(width) if not copy.of_a][first : first + count]
    start, stride = copies_async(tuple(some), vectors=vectors), tiling.columns
    lanes = tiling.lanes_along_b(width)
    if not some:
        return
    both = Both(dtype, tile=tiling.b_elements, B=tiling.depth * stride)
    kinds = [array_of(dtype), U64, array_of(dtype), U32, U32]
    for thread in range(tiling.threads):
        at = thread // lanes * stride + thread % lanes * width
        start(both.body["tile"], uint64(at), both.body["B"], uint32(at), uint32(stride))
        execute(start, kinds, (both.ir["tile"], at, both.ir["B"], at, stride))
    of_body, of_ir = both.accesses("tile", "B")
    assert of_body == of_ir
    both.agree()


@pytest.mark.parametrize("load", [load_vector, load_pair, load_vector_streaming])
@given(index=st.integers(0, 3), wide=st.booleans(), dtype=DTYPES)
def test_a_vector_is_loaded_where_the_ir_loads_it(load: Callable[..., Any], index: int, wide: bool, dtype: str) -> None:
    width = 2 if load is load_pair else 16 // ITEMSIZE[dtype]
    both, kind = Both(dtype, array=4 * width), types.UniTuple(getattr(types, dtype), width)
    result = execute(load, [array_of(dtype), U64 if wide else U32], (both.ir["array"], index * width), kind)
    assert result == load(both.body["array"], index * width)
    assert len(result) == width
    of_body, of_ir = both.accesses("array")
    assert of_body == of_ir


@pytest.mark.parametrize("store", [store_vector, store_vector_streaming])
@given(index=st.integers(0, 3), dtype=DTYPES)
def test_a_vector_is_stored_where_the_ir_stores_it(store: Callable[..., Any], index: int, dtype: str) -> None:
    width = 16 // ITEMSIZE[dtype]
    both, values = Both(dtype, array=4 * width), tuple(map(np.dtype(dtype).type, range(1, width + 1)))
    store(both.body["array"], index * width, values)
    kinds = [array_of(dtype), U32, types.UniTuple(getattr(types, dtype), width)]
    execute(store, kinds, (both.ir["array"], index * width, values))
    of_body, of_ir = both.accesses("array")
    assert of_body == of_ir
    both.agree()


@pytest.mark.parametrize(("copy", "vectors"), [(copy_vector, 1), (copy_vector_async, 1), (copy_element_async, 0)])
@given(place=st.integers(0, 3), index=st.integers(0, 3), dtype=DTYPES)
def test_a_copy_goes_where_the_ir_copies(
    copy: Callable[..., Any], vectors: int, place: int, index: int, dtype: str
) -> None:
    width = 16 // ITEMSIZE[dtype] if vectors else 1
    both = Both(dtype, tile=4 * width, array=4 * width)
    copy(both.body["tile"], place * width, both.body["array"], index * width)
    kinds = [array_of(dtype), U32, array_of(dtype), U64]
    execute(copy, kinds, (both.ir["tile"], place * width, both.ir["array"], index * width))
    of_body, of_ir = both.accesses("tile", "array")
    assert of_body == of_ir
    both.agree()


@given(index=st.integers(0, 7), dtype=DTYPES)
def test_an_element_is_added_to_where_the_ir_adds(index: int, dtype: str) -> None:
    both = Both(dtype, array=8)
    accumulate(both.body["array"], index, 3)
    execute(accumulate, [array_of(dtype), U32, getattr(types, dtype)], (both.ir["array"], index, 3))
    of_body, of_ir = both.accesses("array")
    assert of_body == of_ir
    both.agree()


@given(offsets=st.lists(st.integers(0, 6), min_size=1, max_size=4), at=st.integers(0, 3), dtype=DTYPES)
def test_vectors_come_from_where_the_ir_loads(offsets: list[int], at: int, dtype: str) -> None:
    width = 16 // ITEMSIZE[dtype]
    copy = copy_vectors(tuple((i * width, offset * width) for i, offset in enumerate(offsets)))
    both = Both(dtype, part=4 * width, tile=10 * width)
    copy(both.body["part"], both.body["tile"], uint64(at * width))
    execute(copy, [array_of(dtype), array_of(dtype), U64], (both.ir["part"], both.ir["tile"], at * width))
    of_body, of_ir = both.accesses("part", "tile")
    assert of_body == of_ir
    both.agree()


@given(
    down=st.integers(1, 5), across=st.integers(1, 5), part=st.integers(0, 1), flags=st.tuples(*[st.booleans()] * 2),
    dtype=DTYPES,
)  # fmt: skip
def test_an_outer_product_is_added_in_the_order_given(
    down: int, across: int, part: int, flags: tuple[bool, bool], dtype: str
) -> None:
    results = Variant(down, across, flags[0]).results()
    product = outer_product(results, across, part * down, part * across, b_first=flags[1])
    both = Both(dtype, total=down * across, a=2 * down, b=2 * across)
    product(both.body["total"], both.body["a"], both.body["b"])
    execute(product, [array_of(dtype)] * 3, tuple(both.ir.values()))
    of_body, of_ir = both.accesses("total")
    assert of_body == of_ir
    assert [index for kind, _, index, _ in of_ir if kind == "store"] == [i * across + j for i, j in results]
    assert set(both.accesses("a", "b")[0]) == set(both.accesses("a", "b")[1])
    both.agree()
