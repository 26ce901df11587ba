"""numba-cuda-mlir: it gets the kernels' own functions, what it makes of them, and what it does not take."""

from __future__ import annotations

import re
import struct
import sys
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

import by_ptx
from programs import NUMBA, assert_right, case_of, cuda_kernel, first_dtype, numba_kernel, planned
from smembench.kernels import registry
from smembench.kernels.intrinsics.block_flags import MOST_BLOCKS
from smembench.kernels.intrinsics.vector import load_vector, store_vector
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import INSTALL, INSTALLED, cuda, number, uint32, uint64
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case
from smembench.model.measurement import Status
from smembench.run.config import Sweep
from smembench.run.trial import Request, TrialRunner
from smembench.toolchains import registry as toolchains
from smembench.toolchains.cubin import entry
from smembench.toolchains.machine_code import instructions, machine_code, opcodes
from smembench.toolchains.memory_instructions import accesses
from smembench.toolchains.mlir.dialect import translated
from smembench.toolchains.mnemonics import mnemonic
from smembench.toolchains.numba import TOOLCHAIN as BY_NUMBA
from smembench.toolchains.numba_cuda_mlir import NumbaCudaMlir, compiled, descriptor
from smembench.toolchains.registry import Refused, toolchain_of

OWN = [kernel for kernel in NUMBA if not (kernel.peer or kernel.library)]
needs_mlir = pytest.mark.skipif(
    find_spec("numba_cuda_mlir") is None, reason="needs numba-cuda-mlir: pip install 'smembench[mlir]'"
)
needs_numba_cuda = pytest.mark.skipif(not INSTALLED, reason=f"needs numba-cuda: {INSTALL}")
documented = pytest.mark.parametrize(
    ("problem", "name"),
    [
        *(("transpose", name) for name in ("copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad")),
        *(("matmul", name) for name in ("naive", "tiled")),
    ],
)
PARAMETER = b"\x04\x17\x0c\x00"
"""The record of a kernel's parameter in an object file: two words, then its size in bits 18 and above."""


def by_mlir(problem: str, name: str) -> Kernel:
    kernel = registry.find(problem, name, "cuda", "mlir")
    assert kernel is not None
    return kernel


def copying(function: Any) -> tuple[Case, NumbaKernel]:
    """copyGmem's case and program with another function, of an output, an input and two sides."""
    case = square(by_mlir("transpose", "copyGmem"))
    return case, replace(numba_kernel(case), function=function)


def square(kernel: Kernel, dtype: str = "float32") -> Case:
    return case_of(kernel, 40, 40, 40, dtype, Block(16, 16))


@pytest.mark.parametrize("kernel", OWN, ids=lambda kernel: kernel.name)
def test_every_kernel_in_numbas_dialect_is_compiled_from_the_same_function(kernel: Kernel) -> None:
    case, ours = case_of(by_mlir(kernel.problem, kernel.name), 64, 64, 64, first_dtype(kernel)), kernel.build
    program, same = numba_kernel(case), ours(case_of(kernel, 64, 64, 64, first_dtype(kernel)))
    assert isinstance(toolchain_of(program, case.compiler), NumbaCudaMlir)
    assert toolchain_of(program) is BY_NUMBA
    assert isinstance(same, NumbaKernel)
    assert program.function.__code__ is same.function.__code__
    assert (program.grid, program.block) == (same.grid, same.block)


def test_what_nobody_compiles_runs_once_whatever_the_compiler() -> None:
    assert registry.find("transpose", "memcpy", "cuda", "mlir") is None
    cases = [item.case for item in planned({"problem": "transfer", "bytes": 64, "compiler": "mlir"})]
    assert {case.compiler for case in cases} == {"numba"}


@needs_mlir
def test_a_ceiling_is_compiled_by_the_compiler_of_the_run() -> None:
    ceilings = [
        item.case
        for item in planned({"problem": "reduction", "n": 64, "kernel": "sumShuffled", "compiler": "mlir"})
        if item.case.kernel == "readGmem"
    ]
    assert [case.compiler for case in ceilings] == ["mlir"]


def test_it_is_the_default_where_numba_cuda_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchains, "find_spec", lambda module: module)
    assert Sweep(problem="transpose").compiler == ("numba",)
    assert [toolchains.is_port(name) for name in ("numba", "mlir", "nvrtc", "torch")] == [False, True, True, False]
    monkeypatch.setattr(toolchains, "find_spec", lambda module: None if module == "numba_cuda" else module)
    assert Sweep(problem="transpose").compiler == ("mlir",)
    assert [toolchains.is_port(name) for name in ("numba", "mlir", "nvrtc", "torch")] == [False, False, True, False]
    assert [toolchains.named(name) for name in ("numba", "mlir", "torch")] == ["", "mlir", ""]


def test_a_function_gets_the_names_of_the_other_dialect(monkeypatch: pytest.MonkeyPatch) -> None:
    types, theirs = SimpleNamespace(float32="their float32", uint32="their uint32"), ModuleType("theirs")
    theirs.__dict__["jit"] = lambda *, device: lambda function: function
    package = ModuleType("numba_cuda_mlir")
    package.__dict__.update(cuda=theirs, types=types)
    monkeypatch.setitem(sys.modules, "numba_cuda_mlir", package)
    dtype, width = number("float32"), 4

    def helper() -> Any:
        return uint32

    def function(step: int = 1) -> Any:
        return cuda, dtype, width, helper(), step

    assert translated(function)() == (theirs, "their float32", 4, "their uint32", 1)
    assert function() == (cuda, dtype, 4, uint32, 1)


def test_an_array_is_passed_as_buffer_elements_offset_size_and_stride() -> None:
    array = SimpleNamespace(address=4096, size=np.int64(40))
    assert descriptor(array) == (4096, 4096, 0, 40, 1)


def test_a_kernel_that_is_not_taken_is_skipped_with_the_reason() -> None:
    class Refusing:
        def reserve(self, sizes: object) -> None:
            pass

        def prepare(self, *given: object) -> None:
            raise Refused("no such thing as blockIdx")

    request = Request(square(by_mlir("transpose", "copyGmem")), 0, 3, 1.0, 1.0, 0.0, 1)
    trial = TrialRunner({"cuda:0": Refusing()}).run(request)  # type: ignore[dict-item]
    assert (trial.status, trial.reason) == (Status.SKIPPED, "no such thing as blockIdx")


@needs_mlir
@documented
def test_it_compiles_a_document_kernel(problem: str, name: str) -> None:
    arrays, case = len(PROBLEMS[problem].arrays), square(by_mlir(problem, name))
    code = compiled(case, numba_kernel(case), "9.0")
    assert numba_kernel(case).function.__name__ in entry(code)
    words = [code[at + 8 : at + 16] for at in range(len(code)) if code.startswith(PARAMETER, at)]
    sizes = {index & 0xFFFF: packed >> 18 for index, packed in (struct.unpack("<II", word) for word in words)}
    assert [sizes[index] for index in sorted(sizes)] == [8] * 5 * arrays + [4] * len(PROBLEMS[problem].scalars(case))


@needs_mlir
@needs_numba_cuda
@documented
def test_its_indices_are_as_wide_as_numbas(problem: str, name: str) -> None:
    ours = machine_code(square(by_mlir(problem, name)), "9.0")
    by_numba = machine_code(square(cuda_kernel(problem, name)), "9.0")
    assert ours
    assert by_numba
    # Without the rule of unsigned integers they are 64 bits wide, and the code is two to three times as long.
    assert by_numba.instructions <= ours.instructions < 1.8 * by_numba.instructions


@needs_mlir
@needs_numba_cuda
@pytest.mark.parametrize(
    ("problem", "name"),
    [
        ("transpose", "transposeVectorized"),
        ("transpose", "transposeStreamed"),
        ("reduction", "sumVectorized"),
        ("matmul", "vectorized"),
        ("matmul", "mmaAsync"),
    ],
)
def test_intrinsics_are_the_instructions_that_numba_makes_of_them(problem: str, name: str) -> None:
    """128-bit accesses, those with a cache operator, asynchronous copies, ``ldmatrix`` and ``mma.sync``."""
    kernel = cuda_kernel(problem, name)
    case = case_of(kernel, 256, 256, 256, first_dtype(kernel))
    program = numba_kernel(case)

    def counted(code: bytes) -> tuple[Counter[Any], dict[str, int]]:
        every = [access for word in instructions(code) for access in accesses(word)]
        kinds = Counter(map(mnemonic, opcodes(code)))
        counts = {kind: kinds[kind] for kind in ("FFMA", "HMMA", "LDSM", "LDGSTS")}
        return Counter((element.space, element.kind, element.width) for element in every), counts

    assert counted(compiled(case, program, "9.0")) == counted(BY_NUMBA.machine_code(case, program, "9.0")[1])


@needs_mlir
def test_an_index_may_be_a_literal() -> None:
    def copy(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        store_vector(out, 4, load_vector(inp, 8))

    code = instructions(compiled(*copying(copy), "9.0"))
    assert sorted((element.kind, element.width) for word in code for element in accesses(word)) == [
        ("load", 16),
        ("store", 16),
    ]


@needs_mlir
def test_what_its_dialect_lacks_is_refused_with_a_reason() -> None:
    def powers(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[0] = cuda.laneid_of_nobody

    with pytest.raises(Refused, match="laneid_of_nobody") as refused:
        compiled(*copying(powers), "9.0")
    assert "\n" not in str(refused.value)


@needs_mlir
@pytest.mark.parametrize(
    ("problem", "name", "variable", "bound"),
    [
        ("constant", "constantUniform", "coefficients", "STB_GLOBAL"),
        ("matmul", "streamK", "smembench_block_flags", "STB_LOCAL"),
    ],
)
def test_an_array_of_the_module_has_its_name_where_the_host_looks_for_it(
    problem: str, name: str, variable: str, bound: str
) -> None:
    case = case_of(by_mlir(problem, name), 256, 256, 256, "float32")
    program = numba_kernel(case)
    assert program.constant in ("", variable)
    symbols = ELFFile(BytesIO(compiled(case, program, "9.0"))).get_section_by_name(".symtab")
    assert isinstance(symbols, SymbolTableSection)
    [result] = symbols.get_symbol_by_name(variable) or [None]
    assert result
    assert (result["st_info"]["bind"], result["st_size"]) == (bound, 36 if program.constant else 4 * MOST_BLOCKS)


@pytest.fixture
def as_ptx() -> Generator[None]:
    """What is compiled is its PTX."""
    with by_ptx.mlir_as_ptx():
        yield


@pytest.mark.parametrize(
    ("problem", "name", "m", "dtype"),
    [
        ("access", "setRowReadColPad", 70, "float32"),
        ("transpose", "transposeSmem", 70, "float32"),
        ("transpose", "transposePaired", 70, "float32"),
        ("transpose", "transposeVectorized", 70, "float16"),
        ("transpose", "transposeDown", 70, "float16"),
        ("reduction", "sumShuffled", 70, "float32"),
        ("reduction", "sumShuffled", 70, "float64"),
        ("reduction", "sumPersistent", 70, "float32"),
        ("matmul", "tiled2D", 70, "float32"),
        ("matmul", "tiledHalf", 70, "float16"),
        ("matmul", "serpentine", 70, "float32"),
        ("matmul", "serpentine", 128, "float32"),
        ("matmul", "streamK", 70, "float32"),
    ],
)
@needs_mlir
def test_what_it_compiles_computes_the_reference(problem: str, name: str, m: int, dtype: str) -> None:
    """Its PTX, run on values at sides that no tile divides; 128 of serpentine leave a row of products over."""
    kernel = by_mlir(problem, name)
    case = case_of(kernel, m, 4097 if m == 128 else 45, 33, dtype)
    assert_right(case, lambda inputs: by_ptx.run(case, kernel, PROBLEMS[problem], inputs, "mlir"))


@pytest.mark.usefixtures("as_ptx")
def test_unsigned_integers_are_compared_and_divided_as_such() -> None:
    """By a literal and by a variable of Python, too, which numba-cuda-mlir computes as signed."""

    def function(out: Any, inp: Any, m: Any, n: Any) -> None:
        wide, distance = uint64(m) * n, m - n
        for i in range(1, 4):
            out[i] = number(distance // 3 + distance % i + (distance >> i) + min(distance, i) + max(distance, 7))
            out[4 * i] = number((distance < 3) + (distance <= i) + (distance > 7) + (distance >= i))
            out[5 * i] = number(min(wide, uint64(n)) // 3 + max(wide, i) % 7)
        cuda.threadfence()

    number = uint32
    text = compiled(*copying(function), "9.0").decode()
    assert re.findall(r"(?:min|max|div|rem|shr|mul.hi|setp.[lg][te])\.s\d+.*", text) == []
    assert "membar.gl" in text


@pytest.mark.usefixtures("as_ptx")
def test_a_shuffle_of_64_bits_is_two_of_32() -> None:
    """As in numba-cuda; numba-cuda-mlir shuffles float32 in place of float64, and cuts integers."""

    def function(out: Any, inp: Any, m: Any, n: Any) -> None:
        wide = cuda.shfl_up_sync(mask, uint64(m) << uint64(32), 1)
        out[0] = cuda.shfl_xor_sync(mask, float64(inp[0]), 16) + uint32(wide >> uint64(32))
        out[1] = cuda.shfl_sync(mask, inp[1], 3)

    mask, float64 = 0xFFFFFFFF, number("float64")
    text = compiled(*copying(function), "9.0").decode()
    modes = Counter(re.findall(r"shfl\.sync\.(\w+)\.b32", text))
    assert modes == {"up": 2, "bfly": 2, "idx": 1}
    assert not re.search(r"cvt\.rn\.f32\.f64 .*\n.*shfl", text)


@pytest.mark.usefixtures("as_ptx")
def test_arrays_of_dynamic_shared_memory_are_the_same_external_memory() -> None:
    """Beside a static array, into which memory of a byte would reach; the second as the first, as in numba-cuda."""

    def function(out: Any, inp: Any, m: Any, n: Any) -> None:
        fixed = cuda.shared.array(64, dtype)
        one = cuda.shared.array(0, dtype)
        other = cuda.shared.array(0, dtype)
        fixed[cuda.threadIdx.x] = inp[cuda.threadIdx.x]
        one[cuda.threadIdx.x] = inp[cuda.threadIdx.y]
        cuda.syncthreads()
        out[0] = other[m] + fixed[n]

    dtype = number("float32")
    text = compiled(*copying(function), "9.0").decode()
    assert len(re.findall(r"\.extern \.shared", text)) == 1
    assert len(re.findall(r"^\s*\.shared .*\[256\]", text, re.MULTILINE)) == 1
    assert "__dynamic_shmem" not in text
