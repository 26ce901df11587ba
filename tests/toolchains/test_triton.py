"""Kernels in Triton: what its compiler is asked for, what it makes of them, and what they compute."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from programs import case_of
from smembench.explain.analysis import explain
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import TritonKernel
from smembench.model.case import Block, Case
from smembench.model.errors import UsageError
from smembench.toolchains.cubin import entry
from smembench.toolchains.machine_code import machine_code
from smembench.toolchains.registry import toolchain_of
from smembench.toolchains.triton import Triton, compiled

TESTS = Path(__file__).parents[1]
KERNELS = [kernel for kernel in registry.kernels() if kernel.compiler == "triton"]
VERSION = tuple(int(part) for part in version("triton").split(".")[:2]) if find_spec("triton") else ()
needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton: pip install 'smembench[triton]'")
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)


def program_of(case: Case) -> TritonKernel:
    program = registry.kernel_of(case).build(case)
    assert isinstance(program, TritonKernel)
    return program


def square(kernel: Kernel, n: int, dtype: str = "float32") -> Case:
    return case_of(kernel, n, n, n, dtype, None if kernel.default_blocks else Block(16, 16))


@every_kernel
def test_a_port_has_the_threads_and_the_tiles_of_its_kernel(kernel: Kernel) -> None:
    ours = registry.find(kernel.problem, kernel.name, "cuda")
    assert ours
    assert replace(kernel, compiler="numba", build=ours.build) == replace(
        ours, unsupported=kernel.unsupported, tile_elements=kernel.tile_elements
    )
    case = square(kernel, 1024)
    program, by_numba = program_of(case), ours.build(replace(case, compiler="numba"))
    assert isinstance(toolchain_of(program), Triton)
    assert program.grid == by_numba.grid  # type: ignore[union-attr]
    assert program.block == (by_numba.block[0] * by_numba.block[1], 1)  # type: ignore[union-attr]


@every_kernel
def test_a_port_is_not_traced(kernel: Kernel) -> None:
    with pytest.raises(UsageError, match="Triton is not traced"):
        explain(square(kernel, 64))


@every_kernel
def test_sizes_that_16_divides_are_compiled_on_their_own(kernel: Kernel) -> None:
    whole, ragged, other = (program_of(square(kernel, n)) for n in (1024, 1000, 2048))
    assert all(whole.divisible)
    assert not any(ragged.divisible)
    assert whole.variant == other.variant != ragged.variant


def test_sides_that_are_no_powers_of_two_are_refused() -> None:
    for kernel in KERNELS:
        for block in (Block(24, 24), Block(4, 4), Block(12, 16)):
            assert kernel.refusal(case_of(kernel, 64, 64, 64, block=block)), (kernel.name, block)


@pytest.fixture
def fake_triton(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """A Triton that makes no code; what it was asked to compile."""
    asked: list[SimpleNamespace] = []

    def compile_(source: Any, *, target: object, options: object) -> SimpleNamespace:
        asked.append(SimpleNamespace(source=source, target=target, options=options))
        ptx = f".visible .entry {source[0].__name__}({'.param .u64 a, ' * 5}.param .u64 b)\n{{ ld.param.u64 }}"
        return SimpleNamespace(asm={"cubin": b"code", "ptx": ptx}, metadata=SimpleNamespace(shared=0, name="x"))

    class Function:
        def __init__(self, function: Callable[..., None]) -> None:
            self.__name__ = function.__name__
            self.arg_names = function.__code__.co_varnames[: function.__code__.co_argcount]

    modules: dict[str, dict[str, Any]] = {
        "triton": {"jit": Function, "compile": compile_},
        "triton.language": {"constexpr": int},
        "triton.backends": {},
        "triton.backends.compiler": {"GPUTarget": lambda *words: words},
        "triton.compiler": {"ASTSource": lambda *words: words},
    }
    for name, contents in modules.items():
        module = ModuleType(name)
        vars(module).update(contents)
        monkeypatch.setitem(sys.modules, name, module)
    for name in ("language", "backends", "compiler"):
        monkeypatch.setattr(sys.modules["triton"], name, sys.modules[f"triton.{name}"], raising=False)
    return asked


@every_kernel
def test_triton_is_told_types_sizes_and_threads(kernel: Kernel, fake_triton: list[SimpleNamespace]) -> None:
    case = square(kernel, 1024, "float64")
    program, problem = program_of(case), PROBLEMS[kernel.problem]
    assert toolchain_of(program).machine_code(case, program, "8.6") == ("", b"code")
    (asked,) = fake_triton
    assert asked.target == ("cuda", 86, 32)
    assert asked.options == {"num_warps": program.block[0] // 32}
    _, signature, constants, attributes = asked.source
    arrays, scalars = len(problem.arrays), len(problem.scalars(case))
    assert list(signature.values())[: arrays + scalars] == ["*fp64"] * arrays + ["u32"] * scalars
    assert constants.keys() == {name for name, kind in signature.items() if kind == "constexpr"}
    assert sorted(attributes) == [(place,) for place in range(arrays + scalars)]
    compiled(replace(case, n=1000), program_of(replace(case, n=1000)), "9.0")
    assert len(fake_triton[1].source[3]) < arrays + scalars


@needs_triton
@every_kernel
@pytest.mark.parametrize(("n", "dtype"), [(1024, "float32"), (1001, "float32"), (1024, "float64")])
def test_triton_compiles_a_kernel(kernel: Kernel, n: int, dtype: str) -> None:
    case = square(kernel, n, dtype)
    done = compiled(case, program_of(case), "9.0")
    assert entry(done.asm["cubin"]) == done.metadata.name
    assert done.metadata.shared > 0
    assert "mma.sync" not in done.asm["ptx"] or dtype == "float64", "float32 is multiplied in float32"
    result = machine_code(case, "9.0")
    assert result
    assert 0 < result.registers <= 255
    assert result.spilled_bytes == 0


@needs_triton
@every_kernel
@pytest.mark.slow
@pytest.mark.skipif(() < VERSION < (3, 9), reason="with this NumPy the interpreter of Triton 3.6 has no loops")
def test_interpreted_a_kernel_is_right(kernel: Kernel) -> None:
    command = [sys.executable, str(TESTS / "interpreted.py"), kernel.name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_tile_that_no_gpu_can_hold_is_refused() -> None:
    (kernel,) = (kernel for kernel in KERNELS if kernel.name == "transposeVectorized")
    refused = kernel.refusal(case_of(kernel, 64, 64, block=Block(64, 4)))
    assert refused
    assert "shared memory" in refused
    assert kernel.refusal(case_of(kernel, 64, 64, block=Block(16, 16))) is None
