"""Arguments of a launch as text and as Python values, and how arrays with gaps and offsets lie in memory."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import cuda
from numpy.lib.stride_tricks import as_strided

from smembench import UsageError, explain_function
from smembench.launches.arguments import from_python, in_order_and_named
from smembench.launches.array_argument import ArrayArgument
from smembench.launches.cuda_parameters import check_data, parameter_names

COPY = """
extern "C" __global__ void copy(float *out, const float *in, int pitch) {
    out[threadIdx.x] = in[threadIdx.y * pitch + threadIdx.x];
}
extern "C" __global__ void before(float *x) { x[(int)threadIdx.x - 4] = 1; }
extern "C" __global__ void gather(float *out, const int *index) { out[index[threadIdx.x]] = 1; }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("float32[64,100]", (4 * 6400, 0, (400, 4))),
        ("float32[64,100] strides 128x1", (4 * (63 * 128 + 100), 0, (512, 4))),
        ("float32[64,100] strides 128x1 offset 4", (4 * (4 + 63 * 128 + 100), 16, (512, 4))),
        ("bfloat16[10] offset 1", (22, 2, (2,))),
        ("float64[3,5]  STRIDES 1X3", (120, 0, (8, 24))),
        ("int8[7] strides 0", (1, 0, (0,))),
    ],
)
def test_text_tells_an_array_and_its_allocation(text: str, expected: tuple[int, int, tuple[int, ...]]) -> None:
    array = from_python(text)
    assert isinstance(array, ArrayArgument)
    assert (array.bytes, array.begin, array.steps) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("float32[4,4] strides 4", "give a stride for each of the 2 dimensions"),
        ("float32[4] offset -1", "write float32[4096,4096]"),
        ("float32[4] offset 1.5", "write float32[4096,4096]"),
        ("float32[4] offset 1 strides 2", "write float32[4096,4096]"),
        ("float32[4] stride 2", "write float32[4096,4096]"),
        ("floats[4]", "write float32[4096,4096]"),
        ("float32[]", "write float32[4096,4096]"),
        ("object[4]", "object is no type of a kernel"),
        ("float32[1000000,1000000]", "has 4000000000000 bytes, more than any GPU"),
        ("float32[4] strides 1000000000000", "more than any GPU"),
    ],
)
def test_what_is_no_array_is_told_in_a_line(text: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        from_python(text)
    assert words in str(raised.value)
    assert repr(text) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_names_are_apart_and_come_once() -> None:
    in_order, named = in_order_and_named(["float32 1.5", 3, "BLOCK=128", "eps=0.5", "mode=tl.float16", "on=True"])
    assert in_order == [np.float32(1.5), 3]
    assert named == {"BLOCK": 128, "eps": 0.5, "mode": "tl.float16", "on": True}
    with pytest.raises(UsageError, match="BLOCK was given before"):
        in_order_and_named(["BLOCK=1", "BLOCK=2"])


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(-3, 3)), min_size=1, max_size=3),
    st.sampled_from(["int8", "int16", "float64"]),
)
def test_an_allocation_has_each_element_where_its_strides_say(sides: list[tuple[int, int]], dtype: str) -> None:
    """NumPy's own views of a large array are the reference; elements that lie on one another are equal."""
    size = np.dtype(dtype).itemsize
    base = np.arange(200).astype(dtype)
    shape, steps = tuple(side for side, _ in sides), tuple(step * size for _, step in sides)
    view = as_strided(base[100:], shape, steps)
    array = from_python(view)
    assert isinstance(array, ArrayArgument)
    content = array.content()
    assert content is not None
    lowest, highest = np.lib.array_utils.byte_bounds(view)
    assert len(content) == array.bytes == highest - lowest
    for index in np.ndindex(shape):
        at = array.begin + int(np.dot(index, array.steps))
        assert content[at : at + size].view(dtype)[0] == view[index]


class _OnDevice(SimpleNamespace):
    """As PyTorch's tensors: a type that NumPy does not know, an address, strides in bytes."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: str) -> None:
        interface = {"shape": shape, "strides": strides, "typestr": "<V2", "data": (address, False), "version": 3}
        super().__init__(shape=shape, dtype=f"torch.{dtype}", __cuda_array_interface__=interface)


def test_arrays_on_a_device_have_their_alignment_and_strides() -> None:
    array = from_python(_OnDevice(0x7F0000000230, (4, 8), (64, 2), "bfloat16"))
    assert isinstance(array, ArrayArgument)
    assert (array.shape, array.dtype.name, array.steps, array.begin) == ((4, 8), "bfloat16", (64, 2), 0x30)
    assert array.data is None
    reverse = from_python(_OnDevice(0x7F000000023E, (8,), (-2,), "float16"))
    assert isinstance(reverse, ArrayArgument)
    assert reverse.begin % 512 == 0x3E


class _Trained:
    """As a tensor with gradients: it says where it lies only when it is detached from them."""

    shape, dtype = (8,), "torch.float32"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise RuntimeError("use tensor.detach() first")

    def detach(self) -> _OnDevice:
        return _OnDevice(0x7F0000000210, (8,), None, "float32")


class _Freed(SimpleNamespace):
    def detach(self) -> None:
        raise RuntimeError("its memory was given back")


@pytest.mark.parametrize(
    ("given", "offset"), [(_Trained(), 0x10), (_Freed(shape=(8,), dtype="torch.float32"), 0)], ids=["trained", "freed"]
)
def test_an_array_whose_library_raises_has_its_shape(given: Any, offset: int) -> None:
    array = from_python(given)
    assert isinstance(array, ArrayArgument)
    assert (array.shape, array.dtype.name, array.offset) == ((8,), "float32", offset)


@pytest.fixture
def file(tmp_path: Path) -> str:
    pytest.importorskip("cuda.bindings.nvrtc")
    path = tmp_path / "copy.cu"
    path.write_text(COPY)
    return str(path)


@pytest.mark.parametrize(
    ("array", "sectors"), [("float32[64]", 4), ("float32[64] offset 1", 5), ("float32[64] offset 8", 4)]
)
def test_an_offset_moves_the_sectors(file: str, array: str, sectors: int) -> None:
    result = explain_function(f"{file}:copy", grid=1, block=32, args=("float32[32]", array, 0))
    assert result.sectors("load") == sectors


def test_bounds_are_those_of_the_allocation(file: str) -> None:
    launch: dict[str, Any] = {"grid": 1, "block": (32, 4)}
    whole = ("float32[32]", "float32[4,32] strides 50x1", 50)
    assert not explain_function(f"{file}:copy", args=whole, **launch).trace.mistakes
    (mistake,) = explain_function(f"{file}:copy", args=(*whole[:2], 51), **launch).trace.mistakes
    assert "loads 4 bytes at byte 728 of in, which has 728 bytes" in mistake.text
    (mistake,) = explain_function(f"{file}:copy", args=("float32[32]", "float32[0]", 0), **launch).trace.mistakes
    assert "loads in[0], and in has 0 elements" in mistake.text
    launch = {"grid": 1, "block": 8}
    assert not explain_function(f"{file}:before", args=("float32[4] offset 4",), **launch).trace.mistakes
    assert explain_function(f"{file}:before", args=("float32[4] offset 3",), **launch).trace.mistakes


def test_data_with_strides_is_read_where_it_lies(file: str) -> None:
    index = np.arange(64, dtype=np.int32)[::2]
    result = explain_function(f"{file}:gather", grid=1, block=32, args=("float32[64]", index))
    assert result.sectors("load") == 4  # the kernel knows of no strides: it reads the first 32 numbers
    assert result.sectors("store") == 4
    result = explain_function(f"{file}:gather", grid=1, block=16, args=("float32[64]", index[:16]))
    assert not result.trace.mistakes


@pytest.mark.parametrize(
    ("array", "sectors"),
    [
        ("float32[8,32]", 4),
        ("float32[8,32] strides 1x8", 32),
        ("float32[8,32] strides 33x1 offset 1", 5),
        (np.zeros((32, 8), np.float32).T, 32),
        (np.zeros((8, 64), np.float32)[:, ::2], 8),
        (np.zeros((8, 32), np.float32)[:, ::-1], 4),
    ],
)
def test_numba_follows_strides_and_offsets(array: Any, sectors: int) -> None:
    def first(out: Any, a: Any) -> None:
        i = cuda.threadIdx.x
        out[i] = a[0, i]

    result = explain_function(first, grid=1, block=32, args=("float32[32]", array))
    assert result.sectors("load") == sectors


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ("float*x, const float*const*y, float *&z", "x y z"),
        ("float* in, // input data, by rows\n float* out /* out (n) */, int n /*count*/", "in out n"),
        ("View<float, 4> v, Foo<(1 > 2)>::type w, std::size_t n, unsigned long long m", "v w n m"),
        ("const float* __restrict__ a, float *__restrict b, const __grid_constant__ CUtensorMap c", "a b c"),
        ("float (&a)[4], float b[3][4], float (*c)[32], void (*d)(int, float)", "a b c d"),
        ("int n = most(1, 2), float k = 3, dim3 g = {1, 2, 3}", "n k g"),
        ("__align__(8) P p, [[maybe_unused]] int n, int m [[maybe_unused]], int q __attribute__((unused))", "p n m q"),
        ("float *x\n#ifdef DEBUG\n, int *log // of threads\n#endif\n", "x log"),
        ("float *x\n#ifdef LONG\n, long n\n#else\n, int n\n#endif\n", ""),
        ("float *x, const float* __restrict__", ""),
        ("float *x, const View<int>", ""),
        ("float *x, unsigned int", ""),
        ("float *x, std::size_t", ""),
        ("float *x, int x", ""),
    ],
)
def test_parameters_are_called_as_in_the_source_or_not_at_all(parameters: str, names: str) -> None:
    source = f'// scale(double *other) {{\nconst char *page = "http://here"; __global__ void scale({parameters})\n{{ }}'
    assert parameter_names(source, "scale<float>", len(names.split()) or 2) == names.split()


@pytest.mark.parametrize(
    ("declared", "dtype", "expected"),
    [
        ("const int*i", "int64", "int32"),
        ("const int *__restrict__ i", "bool", "int32"),
        ("unsigned* i", "float32", "uint32"),
        ("unsigned long long *i", "int32", "uint64"),
        ("float *i", "int32", "float32"),
        ("float *i", "complex64", "float32"),
        ("double *i", "complex64", "float64"),
        ("__half *i", "float32", "float16"),
        ("uint16_t *i", "float16", "uint16"),
        ("int *i", "uint32", ""),
        ("int *i", ">i4", ""),
        ("long *i", "int64", ""),
        ("__nv_bfloat16 *i", "uint16", ""),
        ("float2 *i", "complex64", ""),
        ("const unsigned char *i", "int64", ""),
        ("void *i", "float64", ""),
        ("float **i", "int64", ""),
        ("Part i", "int64", ""),
    ],
)
def test_data_is_of_the_type_that_a_pointer_points_to(declared: str, dtype: str, expected: str) -> None:
    source = f"__global__ void gather({declared}, float *out) {{ }}"
    # An array without data has no bits that might be read as another type.
    given = [from_python(np.zeros(4, dtype)), from_python("float64[4]")]
    if not expected:
        check_data(source, "gather", given)
        return
    with pytest.raises(UsageError, match=f"^i: points to {expected}, but its data is {dtype}; convert it"):
        check_data(source, "gather", given)


def test_data_of_another_type_is_refused_and_its_bits_are_taken_by_request(file: str, tmp_path: Path) -> None:
    launch: dict[str, Any] = {"grid": 1, "block": 32}
    np.save(tmp_path / "index.npy", np.arange(16))
    with pytest.raises(UsageError, match="index: points to int32, but its data is int64"):
        explain_function(f"{file}:gather", args=("float32[64]", str(tmp_path / "index.npy")), **launch)
    result = explain_function(f"{file}:gather", args=("float32[64]", f"int32 {tmp_path / 'index.npy'}"), **launch)
    assert result.sectors("load") == 4


@pytest.mark.parametrize("content", [b"", b"number", b"\x93NUMPY\x01\x00"])
def test_a_file_that_is_no_array_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "wrong.npy").write_bytes(content)
    with pytest.raises(UsageError, match=r"wrong\.npy: is no array in NumPy's format"):
        from_python(str(tmp_path / "wrong.npy"))


def test_a_file_of_several_arrays_is_none(tmp_path: Path) -> None:
    np.savez(tmp_path / "several.npz", np.zeros(3))
    (tmp_path / "several.npz").rename(tmp_path / "several.npy")
    with pytest.raises(UsageError, match=r"several\.npy: is no array in NumPy's format"):
        from_python(str(tmp_path / "several.npy"))
