"""Checks of launches, without a GPU: what is taken for the reference, and the bytes that a kernel gets."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from smembench import UsageError
from smembench.launches.arguments import from_python, parsed, share_memory
from smembench.launches.array_argument import ArrayArgument
from smembench.launches.contract import Contract, Expected, checked_against
from smembench.launches.library_arrays import as_the_function_takes
from smembench.launches.live import tokens
from smembench.launches.parameters import is_structure, scalar_bytes, structure_bytes, untyped
from smembench.launches.placed_array import PlacedArray
from smembench.model.case import Case
from smembench.model.user_launch import UserLaunch
from smembench.run.config import from_data
from smembench.run.launch_sweep import LaunchSweep, in_folder
from smembench.toolchains.loaded import Parameter


def contract(*arguments: str, check: str = "mine.py:f", **keys: Any) -> tuple[Contract, Case]:
    launch = UserLaunch("k.cu:k", arguments, (1,), (1,), check=check, **keys)
    case = Case("time", "k", "cuda:0", "float32", 1, 1, launch=launch)
    return Contract(case), case


def why_wrong(wanted: Any, result: Any, **keys: Any) -> str:
    checked, case = contract("float32[2]", **keys)
    return checked.check(case, Expected([np.asarray(wanted)], {}), {0: np.asarray(result)}).detail


@pytest.mark.parametrize(
    ("wanted", "result"),
    [
        ([np.inf, 1], [0, 1]),
        ([np.inf, 1], [-np.inf, 1]),
        ([np.inf, 1], [np.nan, 1]),
        ([1, 1], [np.inf, 1]),
        ([np.nan, 1], [1, 1]),
        ([1e200, 1], [2e200, 1]),
        ([1e-200, 0], [2e-200, 0]),
    ],
)
def test_neither_infinities_nor_large_numbers_hide_a_difference(wanted: list[float], result: list[float]) -> None:
    assert why_wrong(np.array(wanted), np.array(result)).startswith("argument 0: 1 of 2 elements differ")
    assert why_wrong(np.array(wanted), np.array(wanted)) == ""


@pytest.mark.parametrize(
    ("wanted", "result", "text"),
    [
        (np.array([1 + 5j, 1]), np.ones(2, np.float32), "the reference is of type complex128, the output float32"),
        (np.array([None, None]), np.ones(2, np.float32), "the reference is of type object"),
        (np.zeros(2, "i4,f4"), np.zeros(2, "i4,f4"), "its elements are structures"),
    ],
)
def test_types_that_do_not_compare_are_told(wanted: Any, result: Any, text: str) -> None:
    assert why_wrong(wanted, result).startswith(f"argument 0: {text}")


def test_a_check_that_compares_nothing_does_not_pass() -> None:
    checked, case = contract("float32[0]")
    for expected, outputs in (
        (Expected(None, {}), {}),
        (Expected([np.zeros(0, np.float32)], {}), {0: np.zeros(0, np.float32)}),
    ):
        verdict = checked.check(case, expected, outputs)
        assert (verdict.passed, verdict.detail) == (False, "--check mine.py:f: the kernel has no output to compare")


def test_a_relative_tolerance_holds_for_the_lowest_integer_too() -> None:
    assert why_wrong(np.array([-128, 1], np.int8), np.array([-127, 1], np.int8), rtol=0.1) == ""
    assert why_wrong(np.array([-128, 1], np.int8), np.array([127, 1], np.int8), rtol=0.1).endswith("(rtol 0.1)")


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e4m3fn", "bfloat16", "float16", "float32", "complex64"])
def test_each_type_of_floats_has_a_tolerance(dtype: str) -> None:
    wanted = np.array([1, 2]).astype(dtype)
    assert why_wrong(wanted, wanted) == ""
    assert why_wrong(wanted, np.array([1, 8]).astype(dtype)).startswith("argument 0: 1 of 2 elements differ")
    assert PlacedArray(0, ArrayArgument((2,), np.dtype(dtype))).__cuda_array_interface__["typestr"] in (
        np.dtype(dtype).str if dtype in ("float16", "float32", "complex64") else "<u1<u2"
    )


@pytest.mark.parametrize(("text", "value"), [("bool 0", False), ("bool False", False), ("bool 1", True)])
def test_a_boolean_is_what_its_text_says(text: str, value: bool) -> None:
    assert bool(parsed(text)) is value


def test_data_reaches_a_gpu_in_its_byte_order_and_shape(tmp_path: Path) -> None:
    for name, given in {
        "swapped": np.arange(3, dtype=">f4"),
        "number": np.array(3.0, np.float32),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "backwards": np.arange(6.0)[::-1],
    }.items():
        np.save(tmp_path / name, given)
        made, case = contract(f"{tmp_path / name}.npy")
        (content,) = made.inputs(case, 0)
        assert (content.shape, content.dtype.isnative) == (given.shape, True)
        assert np.array_equal(content, given)
    np.save(tmp_path / "text", np.array(["a"]))
    with pytest.raises(UsageError, match=r"text\.npy: <U1 is no type of a kernel"):
        parsed(f"{tmp_path}/text.npy")


def test_elements_that_share_memory_are_what_is_read_of_them() -> None:
    made, case = contract("float32[2,3] strides 0x1")
    (content,) = made.inputs(case, 0)
    assert np.array_equal(content[0], content[1])


def test_a_number_of_numpys_keeps_its_type() -> None:
    with tokens() as made:
        value = parsed(made.of(np.float32(0.1), "float32"))
    assert isinstance(value, np.float32)


def test_a_reference_finds_what_launches_find() -> None:
    with tokens() as made:
        seen: list[Any] = []
        checked, case = contract("float32[2]", "float32[2]", check=made.of(lambda *arrays: seen.extend(arrays), "f"))
        checked.filled = {1: np.zeros(2, np.float32)}
        expected = checked.reference(case, checked.inputs(case, 0), "")
    assert (seen[1] == 0).all()
    assert list(expected.written) == []
    with tokens() as made:
        checked, case = contract("float32[2]", check=made.of(np.ones(2, np.float32), "array"))
        assert checked.check(
            case, checked.reference(case, checked.inputs(case, 0), ""), {0: np.ones(2, np.float32)}
        ).passed


@pytest.mark.parametrize(
    ("kind", "size", "argument", "text"),
    [
        ("f32", 4, np.int32(3), "is of type f32, not int32; write float32 3"),
        ("bf16", 2, 1.5, "x: is of type bf16; give a whole number, or float16 1.5 or bfloat16 1.5 if it is a float"),
        ("u32", 4, 1.5, "x: is of type u32; give a whole number, or float32 1.5 if it is a float to its kernel"),
        ("u8", 1, 1.5, "x: is of type u8; give a whole number$"),
        ("u32", 4, 2**32, "does not fit in 4 bytes"),
        ("u32", 4, np.int64(3), "has 4 bytes; int64 has 8"),
        ("u32", 4, np.float32(3), "x: is of type u32, not float32; give a whole number without a type"),
    ],
)
def test_a_number_that_is_no_parameters_is_told(kind: str, size: int, argument: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        scalar_bytes(Parameter("x", kind, size), argument)


@pytest.mark.parametrize(
    ("kind", "size", "argument", "text"),
    [
        ("b32", 4, 2, "2 is passed as int32: if it is a float to the kernel, write 'float32 2'"),
        ("b64", 8, -1, "-1 is passed as int64: if it is a float to the kernel, write 'float64 -1'"),
        ("b16", 2, 1, "1 is passed as int16: if it is a float to the kernel, write 'float16 1' or 'bfloat16 1'"),
        ("b32", 4, np.float32(2), ""),
        ("f32", 4, 2, ""),
        ("u32", 4, 2, ""),
        ("b8", 1, 2, ""),
        ("b8", 24, 2, ""),
    ],
)
def test_of_a_number_without_a_type_it_is_told_what_it_is_passed_as(
    kind: str, size: int, argument: Any, text: str
) -> None:
    assert untyped(Parameter("x", kind, size), argument) == text


def test_a_half_is_two_bytes() -> None:
    with pytest.raises(UsageError, match=r"give float16 1\.5 or bfloat16 1\.5, or its 2 bytes"):
        structure_bytes(Parameter("x", "b8", 2), 1.5)


def test_a_structure_of_eight_bytes_is_no_pointer() -> None:
    pair, pointer = Parameter("x", "b8", 8), Parameter("x", "u64", 8)
    data = from_python(np.ones(2, np.float32))
    assert isinstance(data, ArrayArgument)
    assert is_structure(pair, data)
    assert not is_structure(pointer, data)
    assert not is_structure(pair, ArrayArgument((2,), np.dtype("f4")))
    assert structure_bytes(pair, data) == np.ones(2, np.float32).tobytes()


def test_files_of_one_name_are_told_apart_by_their_folders() -> None:
    assert LaunchSweep(kernel=("old/k.cu:f", "/a/new/k.cu:f")).labels == ("old:k.cu:f", "new:k.cu:f")
    assert LaunchSweep(kernel=("old/k.cu:f", "new/k.cu:g")).labels == ("k.cu:f", "k.cu:g")


def test_paths_are_relative_to_the_folder_of_a_config() -> None:
    sweep = {
        "kernel": "k.cu:f",
        "check": "/r.py:g",
        "arg": ["x.npy", "bfloat16 a/x.npy", "float32 1.5", "float32[n]", 4],
    }
    arguments = ["in/x.npy", "bfloat16 in/a/x.npy", "float32 1.5", "float32[n]", 4]
    assert in_folder(sweep, Path("in")) == {"kernel": "in/k.cu:f", "check": "/r.py:g", "arg": arguments}


def test_whole_numbers_may_be_numpys() -> None:
    keys = {"kernel": "k.cu:f", "grid": np.int64(8), "out": np.int64(0), "sizes": {"n": [np.int64(64), 128]}}
    sweep = LaunchSweep.model_validate(keys)
    assert (sweep.grid, sweep.out, sweep.sizes) == ("8", ("0",), {"n": (64, 128)})


def test_sides_in_a_list_are_those_of_a_text() -> None:
    listed, written = (
        LaunchSweep.model_validate({"kernel": "k.cu:f", "grid": grid, "block": 32})
        for grid in (["cdiv(n, 4)", 8], "cdiv(n, 4),8")
    )
    assert listed == written


def test_a_name_is_one_part_of_a_cases_id() -> None:
    with pytest.raises(UsageError, match="name in sweep 1 'a/b': leave / out"):
        from_data({"sweep": [{"problem": "time", "kernel": "k.cu:f", "name": "a/b"}]})


def test_a_library_is_known_by_what_is_imported_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = SimpleNamespace(cuda=SimpleNamespace(ExternalStream=lambda stream: None), asarray=lambda array: "CuPy's")
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    array = {0: PlacedArray(0, ArrayArgument((2,), np.dtype("f4")))}
    code: dict[str, Any] = {"relu": SimpleNamespace(__module__="cupy.functional")}
    exec("def f(x): return relu(x)", code)
    for function in (code["f"], partial(code["f"], 1)):
        assert as_the_function_takes(function, 0, array)[0] == {0: "CuPy's"}
    assert as_the_function_takes(from_python, 0, array)[0] is array


def test_a_reference_gets_the_names_that_it_takes() -> None:
    with tokens() as made:
        for function in (lambda x, BLOCK: x * BLOCK, lambda x, **named: x * named["BLOCK"], lambda x: x * 2):
            checked, case = contract("float32[2]", "BLOCK=2", "num_warps=4", check=made.of(function, "f"))
            inputs = checked.inputs(case, 0)
            assert checked.check(case, checked.reference(case, inputs, ""), {0: 2 * inputs[0]}).passed


@pytest.mark.parametrize("view", [slice(None), slice(2, None), slice(None, None, -1), slice(None, 3)])
def test_arrays_that_share_memory_are_noted(view: slice) -> None:
    """As one array that is two arguments does, and two views; behind each other they do not."""
    given = np.ones(8)
    apart = {"a copy": given[view].copy(), "behind": given[4:], "empty": given[:0], "a scalar": np.float64(1)}
    with tokens() as made:
        both, _ = contract(made.of(given, "given"), made.of(given[view], "view"))
        assert "arrays that share memory lie apart here" in both.notes
        for name, other in apart.items():
            alone, _ = contract(made.of(given[:4] if name == "behind" else given, "given"), made.of(other, name))
            assert alone.notes == ("the same data in every round",)


def test_an_array_whose_library_names_no_address_shares_no_memory() -> None:
    class Narrow:
        """As a tensor of a type that the interface has no name for."""

        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise KeyError("float8")

    assert not share_memory([Narrow(), Narrow(), np.ones(2)])


def test_a_kernel_of_a_python_file_is_a_reference_too(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(
        "from numba import cuda\n\n@cuda.jit\ndef f(x):\n    x[0] = 1\n\ndef g(x):\n    return x\n"
    )
    for name, launched in (("f", True), ("g", False)):
        _, case = contract("float32[2]", check=f"{tmp_path}/k.py:{name}")
        assert (checked_against(case) is not None) is launched
