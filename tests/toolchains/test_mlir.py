"""numba-cuda-mlir: it gets the kernels' own functions, what it makes of them, and what it does not take."""

from __future__ import annotations

import struct
import sys
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from programs import case_of, cuda_kernel, first_dtype, numba_kernel
from smembench.explain.prediction import predict
from smembench.kernels import registry
from smembench.kernels.common.mlir import port
from smembench.kernels.intrinsics.vector import load_vector, store_vector
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import MlirKernel
from smembench.model.case import Block, Case
from smembench.model.measurement import Prediction, Status
from smembench.run.trial import Request, TrialRunner
from smembench.toolchains.cubin import entry
from smembench.toolchains.machine_code import instructions, machine_code, opcodes
from smembench.toolchains.memory_instructions import memory_instructions
from smembench.toolchains.mlir.dialect import translated
from smembench.toolchains.mnemonics import mnemonic
from smembench.toolchains.numba import TOOLCHAIN as NUMBA
from smembench.toolchains.numba_cuda_mlir import NumbaCudaMlir, compiled, descriptor
from smembench.toolchains.registry import Refused, toolchain_of

KERNELS = [kernel for kernel in registry.kernels() if kernel.compiler == "mlir"]
needs_mlir = pytest.mark.skipif(
    find_spec("numba_cuda_mlir") is None, reason="needs numba-cuda-mlir: pip install 'smembench[mlir]'"
)
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
PARAMETER = b"\x04\x17\x0c\x00"
"""The record of a kernel's parameter in an object file: two words, then its size in bits 18 and above."""


def square(kernel: Kernel, dtype: str = "float32") -> Case:
    return case_of(kernel, 40, 40, 40, dtype, Block(16, 16))


def program_of(case: Case) -> MlirKernel:
    program = registry.kernel_of(case).build(case)
    assert isinstance(program, MlirKernel)
    return program


def test_the_documents_kernels_are_compiled_from_the_same_functions() -> None:
    names = ["copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad", "naive", "tiled"]
    assert sorted(kernel.name for kernel in KERNELS) == sorted(names)
    for kernel in KERNELS:
        case = square(kernel)
        program, ours = program_of(case), numba_kernel(square(cuda_kernel(kernel.problem, kernel.name)))
        assert isinstance(toolchain_of(program), NumbaCudaMlir)
        assert program.function.__code__ is ours.function.__code__
        assert (program.grid, program.block) == (ours.grid, ours.block)


@every_kernel
def test_a_port_is_traced_as_its_kernel_is(kernel: Kernel) -> None:
    case = square(kernel)
    assert predict(case, "9.0") == predict(replace(case, compiler="numba"), "9.0") != Prediction()


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

    request = Request(square(KERNELS[0]), 0, 3, 1.0, 1.0, 0.0, 1)
    trial = TrialRunner({"cuda:0": Refusing()}).run(request)  # type: ignore[dict-item]
    assert (trial.status, trial.reason) == (Status.SKIPPED, "no such thing as blockIdx")


@needs_mlir
@every_kernel
def test_it_compiles_a_document_kernel(kernel: Kernel) -> None:
    problem, case = PROBLEMS[kernel.problem], square(kernel)
    code = compiled(case, program_of(case), "9.0")
    assert numba_kernel(case).function.__name__ in entry(code)
    words = [code[at + 8 : at + 16] for at in range(len(code)) if code.startswith(PARAMETER, at)]
    sizes = {index & 0xFFFF: packed >> 18 for index, packed in (struct.unpack("<II", word) for word in words)}
    assert [sizes[index] for index in sorted(sizes)] == [8] * 5 * len(problem.arrays) + [4] * len(problem.scalars(case))


@needs_mlir
@every_kernel
def test_its_indices_are_as_wide_as_numbas(kernel: Kernel) -> None:
    by_mlir = machine_code(square(kernel), "9.0")
    by_numba = machine_code(square(cuda_kernel(kernel.problem, kernel.name)), "9.0")
    assert by_mlir
    assert by_numba
    # Without the rule of unsigned integers they are 64 bits wide, and the code is two to three times as long.
    assert by_numba.instructions <= by_mlir.instructions < 1.8 * by_numba.instructions


@needs_mlir
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

    program = port(kernel).build(case)
    assert isinstance(program, MlirKernel)

    def counted(code: bytes) -> tuple[Counter[Any], dict[str, int]]:
        accesses = memory_instructions(instructions(code)).elements()
        kinds = Counter(map(mnemonic, opcodes(code)))
        counts = {kind: kinds[kind] for kind in ("FFMA", "HMMA", "LDSM", "LDGSTS")}
        return Counter((each.space, each.kind, each.width) for each in accesses), counts

    assert counted(compiled(case, program, "9.0")) == counted(NUMBA.machine_code(case, numba_kernel(case), "9.0")[1])


@needs_mlir
def test_an_index_may_be_a_literal() -> None:
    def copy(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        store_vector(out, 4, load_vector(inp, 8))

    kernel = next(kernel for kernel in KERNELS if kernel.name == "copyGmem")
    case = square(kernel)
    accesses = memory_instructions(instructions(compiled(case, replace(program_of(case), function=copy), "9.0")))
    assert sorted((each.kind, each.width) for each in accesses.elements()) == [("load", 16), ("store", 16)]


@needs_mlir
@pytest.mark.parametrize(("problem", "name"), [("constant", "constantUniform"), ("matmul", "wgmma")])
def test_what_its_dialect_lacks_is_refused_with_a_reason(problem: str, name: str) -> None:
    kernel = port(cuda_kernel(problem, name))
    case = case_of(kernel, 64, 64, 64, first_dtype(kernel))
    program = kernel.build(case)
    assert isinstance(program, MlirKernel)
    with pytest.raises(Refused, match=r"\w") as refused:
        compiled(case, program, "9.0")
    assert "\n" not in str(refused.value)
