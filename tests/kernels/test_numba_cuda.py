"""numba-cuda stands behind one module, and what is used of it beyond its documentation is there and means the same."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import ROOT
from smembench.kernels.numba_cuda import PRIVATE, SIMULATED, Private, cuda, device, number, private, uint32
from smembench.toolchains.numba import TOOLCHAIN, descriptor
from smembench.toolchains.nvvm import compiled, compiling

PACKAGE = ROOT / "smembench"
BEHIND = PACKAGE / "kernels/numba_cuda.py"
STUDENTS = [PACKAGE / "studies/solve" / folder for folder in ("files", "solutions")]  # these import what they please
MODULES = [path for path in PACKAGE.rglob("*.py") if path != BEHIND and path.parent not in STUDENTS]
FLOATS = number("float32")[::1]

compiles = pytest.mark.usefixtures("compiler")


@pytest.fixture(scope="module")
def compiler() -> None:
    """Skip what compiles where nothing can be compiled."""
    if SIMULATED:
        pytest.skip("the simulator compiles nothing")
    if reason := TOOLCHAIN.unavailable():
        pytest.skip(reason)


class Buffer:
    """An array of 40 floats at an address, as far as a launch looks at it."""

    address, size, dtype = 4096, 40, np.dtype(np.float32)


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, with the names that it takes from it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def asked_for(path: Path) -> Iterator[str]:
    """Every name that a file asks ``private`` for."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "private":
            (name,) = node.args
            assert isinstance(name, ast.Constant), f"{path}:{node.lineno}: the name is not a literal"
            yield str(name.value)


def test_no_other_module_imports_numba_cuda() -> None:
    result = {(path, name) for path in MODULES for name in imported(path)}
    assert [item for item in result if re.match(r"(numba\.cuda|numba_cuda)(\.|$)", item[1])] == []


def test_of_numba_cuda_mlir_only_what_it_documents_is_imported() -> None:
    result = {name for path in MODULES for name in imported(path) if name.split(".")[0] == "numba_cuda_mlir"}
    assert result == {f"numba_cuda_mlir.{name}" for name in ("cuda", "extending", "types")}


def test_what_modules_ask_for_is_in_the_list() -> None:
    names = {name for path in MODULES for name in asked_for(path)}
    assert names
    assert [name for name in names if not any(f"{item.name}.".startswith(f"{name}.") for item in PRIVATE)] == []


@compiles
@pytest.mark.parametrize("item", PRIVATE, ids=lambda item: item.name)
def test_the_installed_version_has_what_the_package_uses(item: Private) -> None:
    if item.name.startswith("numba_cuda_mlir.") and find_spec("numba_cuda_mlir") is None:
        pytest.skip("needs numba-cuda-mlir")
    with compiling():  # some are there only once something is compiled
        try:
            private(item.name)
        except ImportError as error:
            pytest.fail(f"{error}. What breaks: {item.breaks}")


@compiles
def test_a_name_that_is_gone_is_missed_with_the_version_and_the_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(private("numba.cuda.lowering"), "CUDALower")
    expected = rf"numba-cuda {version('numba-cuda')} has no numba\.cuda\.lowering\.CUDALower, which is for line"
    with pytest.raises(ImportError, match=expected):
        private("numba.cuda.lowering.CUDALower")


def parameters(ptx: str) -> dict[int, str]:
    """The entry's parameters, by their place: the type of each."""
    (entry,) = re.findall(r"\.entry \w+\((.*?)\)", ptx, re.DOTALL)
    return dict(enumerate(re.findall(r"\.param \.(\w+)", entry)))


def used(kernel: Callable[..., None], *signature: Any) -> set[int]:
    """Which of its parameters a kernel loads."""
    ptx = compiled(kernel, signature, (9, 0), at_link_time=False).decode()
    return {int(place) for place in re.findall(r"ld\.param\.\w+\s+[^;]*_param_(\d+)", ptx)}


@compiles
def test_an_array_is_passed_as_the_compiler_reads_it() -> None:
    """Otherwise a kernel reads and writes elsewhere, without an error."""

    def size(out: Any) -> None:
        out[0] = out.size

    def shape(out: Any) -> None:
        out[0] = out.shape[0]

    def second(out: Any, inp: Any, n: Any) -> None:
        out[n] = inp[n]

    passed = descriptor(Buffer())
    address = passed.index(Buffer.address)
    assert used(size, FLOATS) - {address} == {passed.index(Buffer.size)}
    assert used(shape, FLOATS) - {address} == {passed.index(Buffer.size, address)}
    behind = 2 * len(passed)
    assert used(second, FLOATS, FLOATS, uint32) == {address, len(passed) + address, behind}
    ptx = compiled(second, (FLOATS, FLOATS, uint32), (9, 0), at_link_time=False).decode()
    assert list(parameters(ptx).values()) == ["u64"] * behind + ["u32"]


@compiles
def test_indices_of_a_kernel_have_the_types_of_the_rule() -> None:
    """Otherwise they have 64 bits, and kernels are slower, without an error."""

    def index(n: Any) -> Any:
        return cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x + 1 if n > 0 else n

    def returned() -> str:
        return str(cuda.compile_ptx(index, (uint32,), device=True, cc=(9, 0))[1])

    with compiling(index):
        assert returned() == "uint32"
    assert returned() != "uint32"


@compiles
def test_a_users_kernel_has_its_options_and_its_function() -> None:
    def kernel(out: Any) -> None:
        out[0] = 1

    decorated = cuda.jit(kernel, fastmath=True, max_registers=40)
    assert isinstance(decorated, private("numba.cuda.dispatcher.CUDADispatcher"))
    assert decorated.py_func is kernel
    assert (decorated.targetoptions["fastmath"], decorated.targetoptions["max_registers"]) == (True, 40)


@compiles
def test_a_device_function_is_inlined() -> None:
    @device
    def twice(x: Any) -> Any:
        return x + x

    def kernel(out: Any) -> None:
        out[0] = twice(out[1])

    ptx = compiled(kernel, (FLOATS,), (9, 0), at_link_time=False).decode()
    assert ".func" not in ptx
    assert "call" not in ptx


def test_reading_the_declarations_of_all_kernels_loads_nothing_of_numba_cuda() -> None:
    code = """
import sys
from smembench.kernels.registry import kernels
assert len(kernels()) > 50
assert [name for name in sys.modules if name.startswith("numba.cuda.")] == []
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)


def test_a_look_at_every_module_loads_nothing_and_threads_find_it_whole() -> None:
    """``inspect`` and PyTorch look at ``__file__`` of all modules."""
    code = """
import inspect, sys
from threading import Thread
from smembench.kernels.numba_cuda import cuda
inspect.getmodule(len)
[(hasattr(module, "__file__"), hasattr(module, "__warningregistry__")) for module in [*sys.modules.values()]]
assert "numba.cuda.dispatcher" not in sys.modules
found = []
threads = [Thread(target=lambda: found.append(cuda.jit)) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
from numba.cuda import jit, types
assert found == [jit] * 8 and cuda is sys.modules["numba.cuda"], found
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, timeout=60)
