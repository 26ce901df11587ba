"""Constant memory that the host fills: what the compilers make of it, how it is filled, and what a trace sees of it."""

from __future__ import annotations

import ctypes
import re
import struct
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver
from numba import types

from programs import cuda_c_kernel, numba_kernel
from smembench.explain.trace import trace
from smembench.kernels import numba_cuda as cuda_api
from smembench.kernels import registry
from smembench.kernels.constant.problem import TAPS
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case
from smembench.toolchains import numba, nvrtc
from smembench.toolchains.symbols import copy_to_symbol

CONSTANT = ["constantUniform", "constantDiverging"]
OTHERS = [f"{memory}{way}" for memory in ("global", "shared") for way in ("Uniform", "Diverging")]
WIDTHS = [("float32", "f32", 4), ("float64", "f64", 8)]


def case_of(kernel: str, dtype: str = "float32", compiler: str = "numba") -> Case:
    return Case("constant", kernel, "cuda:0", dtype, 1, 1000, None, Block(256, 1), compiler=compiler)


def variables(code: bytes) -> dict[str, tuple[str, int]]:
    """Section and bytes of each variable of a 64-bit ELF file of CUDA machine code, by its name."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", code, 0x3A)
    headers = [struct.unpack_from("<II16xQQI", code, table + index * size) for index in range(count)]

    def text(strings: int, at: int) -> str:
        begin = headers[strings][2] + at
        return code[begin : code.index(b"\0", begin)].decode()

    found = {}
    for _, kind, begin, length, strings in headers:
        for at in range(begin, begin + length, 24) if kind == 2 else ():  # SHT_SYMTAB
            name, info, section, extent = struct.unpack_from("<IBxH8xQ", code, at)
            if info & 0xF == 1 and 0 < section < count:  # STT_OBJECT that is defined here
                found[text(strings, name)] = (text(of_names, headers[section][0]), extent)
    return found


@pytest.mark.parametrize("kernel", CONSTANT)
@pytest.mark.parametrize(("dtype", "suffix", "size"), WIDTHS)
def test_numba_declares_an_array_that_the_host_can_find_and_reads_constant_memory(
    ptx: Any, kernel: str, dtype: str, suffix: str, size: int
) -> None:
    text = ptx(case_of(kernel, dtype))
    assert f".visible .const .align {size} .b8 coefficients[{TAPS * size}];" in text
    assert text.count(f"ld.const.{suffix}") == TAPS
    # Of global memory a thread loads its element of the input and at most one beside it.
    assert len(re.findall(r"ld\.global", text)) == 2


@pytest.mark.parametrize("kernel", OTHERS)
def test_the_other_kernels_have_no_constant_memory(ptx: Any, kernel: str) -> None:
    assert ".const" not in ptx(case_of(kernel))


@pytest.mark.parametrize("kernel", CONSTANT)
def test_the_array_is_in_the_machine_code_of_numba(ptx: Any, kernel: str) -> None:
    from cuda.core import Linker, LinkerOptions, ObjectCode

    text = ptx(case_of(kernel)).encode()
    try:
        code = Linker(ObjectCode.from_ptx(text), options=LinkerOptions(arch="sm_90")).link("cubin").code
    except Exception as error:
        pytest.skip(f"no machine code without nvJitLink: {error}")
    assert variables(bytes(code))["coefficients"] == (".nv.constant3", 4 * TAPS)


@pytest.mark.parametrize("kernel", CONSTANT)
@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("float64", 8)])
def test_the_array_is_in_the_machine_code_of_a_port(kernel: str, dtype: str, size: int) -> None:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    try:
        load_nvidia_dynamic_lib("nvrtc")
    except Exception as error:
        pytest.skip(f"needs the NVRTC library: {error}")
    case = case_of(kernel, dtype, "nvrtc")
    program = cuda_c_kernel(registry.kernel_of(case), case)
    assert program.constant == "coefficients"
    code = bytes(nvrtc.compiled(program, "9.0").code)
    assert variables(code)["coefficients"] == (".nv.constant3", TAPS * size)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Nine floats of the host in the place of a variable of ``library``."""
    held = np.zeros(TAPS, np.float32)

    def get_global(library: object, name: bytes) -> tuple[Any, ...]:
        if (library, name) != ("library", b"coefficients"):
            return (driver.CUresult.CUDA_ERROR_NOT_FOUND, None, None)
        return (driver.CUresult.CUDA_SUCCESS, held.ctypes.data, held.nbytes)

    def copy(target: int, source: int, size: int, stream: int) -> tuple[driver.CUresult]:
        assert stream == 7
        ctypes.memmove(target, source, size)
        return (driver.CUresult.CUDA_SUCCESS,)

    monkeypatch.setattr(driver, "cuLibraryGetGlobal", get_global)
    monkeypatch.setattr(driver, "cuMemcpyHtoDAsync", copy)
    monkeypatch.setattr(driver, "cuGetErrorName", lambda error: (0, error.name.encode()))
    monkeypatch.setattr(driver, "cuGetErrorString", lambda error: (0, b"named symbol not found"))
    return held


def test_an_array_is_copied_to_the_variable_of_its_name(memory: Any) -> None:
    values = np.arange(TAPS, dtype=np.float32)
    copy_to_symbol("library", "coefficients", values, 7)
    assert (memory == values).all()


def test_a_variable_of_another_size_and_one_that_is_not_there_are_refused(memory: Any) -> None:
    with pytest.raises(ValueError, match="variable coefficients has 36 bytes, its input 72"):
        copy_to_symbol("library", "coefficients", np.zeros(TAPS), 7)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_NOT_FOUND: named symbol not found"):
        copy_to_symbol("library", "weights", np.zeros(TAPS, np.float32), 7)


def test_numba_compiles_before_its_first_launch_for_the_types_of_that_launch(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    signatures = []

    def compile_(self: Any, signature: tuple[Any, ...]) -> Any:
        signatures.append(signature)
        module = SimpleNamespace(handle="library")
        return SimpleNamespace(library=SimpleNamespace(get_cufunc=lambda: SimpleNamespace(module=module)))

    case = case_of("constantUniform")
    arrays, scalars = [np.zeros(3, np.float32)] * 3, [np.uint32(1000)]
    dispatcher = cuda.jit(lambda out, inp, coefficients, n: None)
    monkeypatch.setattr(type(dispatcher), "compile", compile_)
    values = np.arange(TAPS, dtype=np.float32)
    numba.TOOLCHAIN.compile(case, numba_kernel(registry.kernel_of(case), case), "9.0").fill("coefficients", values, 7)
    assert signatures == [tuple(dispatcher.typeof_pyval(argument) for argument in (*arrays, *scalars))]
    assert signatures == [(types.float32[::1],) * 3 + (types.uint32,)]
    assert (memory == values).all()


def test_the_variable_of_a_port_is_in_its_code(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code = SimpleNamespace(handle="library", get_kernel=lambda entry: None)
    monkeypatch.setattr(nvrtc, "compiled", lambda program, capability: code)
    case = case_of("constantUniform", compiler="nvrtc")
    values = np.arange(TAPS, dtype=np.float32)
    nvrtc.TOOLCHAIN.compile(case, cuda_c_kernel(registry.kernel_of(case), case), "9.0").fill("coefficients", values, 7)
    assert (memory == values).all()


def test_a_trace_calls_an_array_in_constant_memory_by_its_name() -> None:
    case = case_of("constantUniform")
    traced = trace(registry.kernel_of(case), case)
    assert {request.site.array for request in traced.requests if request.site.space == "constant"} == {"coefficients"}
    assert {request.site.array for request in traced.requests if request.site.space == "global"} == {"out", "in"}


def baked_in(out: Any, inp: Any, coefficients: Any, n: Any) -> None:
    """Reads an array that Numba writes into the module."""
    table = cuda_api.cuda.const.array_like(np.zeros(3, np.float32))
    out[0] = table[int(cuda_api.cuda.threadIdx.x) % 3]


def test_numbas_own_constant_arrays_are_traced_by_number() -> None:
    case = case_of("constantUniform")
    kernel = replace(registry.kernel_of(case), build=lambda case: NumbaKernel(baked_in, grid=(1, 1), block=(32, 1)))
    places = {request.site for request in trace(kernel, case).requests if request.site.space == "constant"}
    assert {(place.array, place.width) for place in places} == {("constant0", 4)}
