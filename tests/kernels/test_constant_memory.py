"""Constant memory that the host fills: what the compilers make of it, how it is filled, and what a trace sees of it."""

from __future__ import annotations

import re
from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver
from elftools.elf.elffile import ELFFile

from programs import case_of, cuda_kernel
from smembench.explain.analysis import explain
from smembench.kernels import registry
from smembench.kernels.constant.problem import TAPS
from smembench.model.case import Case
from smembench.model.problem import ITEMSIZE
from smembench.toolchains.registry import toolchain_of
from smembench.toolchains.symbols import copy_to_symbol

CONSTANT = ["constantUniform", "constantDiverging"]


def case(kernel: str, dtype: str = "float32", compiler: str = "numba") -> Case:
    return replace(case_of(cuda_kernel("constant", kernel), 1, 1000, dtype=dtype), compiler=compiler)


def coefficients(code: bytes) -> tuple[str, int]:
    """Section and bytes of the variable of that name in a file of CUDA machine code."""
    file = ELFFile(BytesIO(code))
    (symbol,) = file.get_section_by_name(".symtab").get_symbol_by_name("coefficients")
    return file.get_section(symbol["st_shndx"]).name, symbol["st_size"]


@pytest.mark.parametrize("kernel", CONSTANT)
@pytest.mark.parametrize(("dtype", "suffix", "size"), [("float32", "f32", 4), ("float64", "f64", 8)])
def test_numba_declares_an_array_that_the_host_can_find_and_reads_constant_memory(
    ptx: Any, kernel: str, dtype: str, suffix: str, size: int
) -> None:
    text = ptx(case(kernel, dtype))
    assert f".visible .const .align {size} .b8 coefficients[{TAPS * size}];" in text
    assert text.count(f"ld.const.{suffix}") == TAPS
    # Of global memory a thread loads its element of the input and at most one beside it.
    assert len(re.findall(r"ld\.global", text)) == 2


@pytest.mark.parametrize("kernel", ["globalUniform", "sharedDiverging"])
def test_the_other_kernels_have_no_constant_memory(ptx: Any, kernel: str) -> None:
    assert ".const" not in ptx(case(kernel))


@pytest.mark.usefixtures("ptx")
@pytest.mark.parametrize("kernel", CONSTANT)
@pytest.mark.parametrize(("compiler", "dtype"), [("numba", "float32"), ("nvrtc", "float32"), ("nvrtc", "float64")])
def test_the_array_is_in_the_machine_code(kernel: str, compiler: str, dtype: str) -> None:
    chosen = case(kernel, dtype, compiler)
    program = registry.kernel_of(chosen).build(chosen)
    _, code = toolchain_of(program).machine_code(chosen, program, "9.0")
    assert coefficients(code) == (".nv.constant3", TAPS * ITEMSIZE[dtype])


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ((driver.CUresult.CUDA_SUCCESS, 0, 36), "variable coefficients has 36 bytes, the array 72"),
        ((driver.CUresult.CUDA_ERROR_NOT_FOUND, None, None), "CUDA_ERROR_NOT_FOUND: named symbol not found"),
    ],
)
def test_a_variable_of_another_size_and_one_that_is_not_there_are_refused(
    monkeypatch: pytest.MonkeyPatch, result: tuple[Any, ...], why: str
) -> None:
    """What is copied to the right one: test_driver_measures.py."""
    monkeypatch.setattr(driver, "cuLibraryGetGlobal", lambda library, name: result)
    monkeypatch.setattr(driver, "cuGetErrorName", lambda error: (0, error.name.encode()))
    monkeypatch.setattr(driver, "cuGetErrorString", lambda error: (0, b"named symbol not found"))
    with pytest.raises((ValueError, RuntimeError), match=why):
        copy_to_symbol("library", "coefficients", np.zeros(TAPS), 7)


def test_a_trace_calls_an_array_in_constant_memory_by_its_name() -> None:
    chosen = case("constantUniform")
    traced = explain(chosen).trace
    assert {request.site.array for request in traced.requests if request.site.space == "constant"} == {"coefficients"}
    assert {request.site.array for request in traced.requests if request.site.space == "global"} == {"out", "in"}
