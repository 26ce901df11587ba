"""CUDA C compiled for the host: the CUDA C ports of kernels, and what tests write themselves."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import Any

from programs import cuda_c_kernel, numba_kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case

HERE = Path(__file__).parent
LIMIT_S = 60
COMPILER = shutil.which("g++")
"""Where the compiler is, or None."""


@dataclass(frozen=True, slots=True)
class HostKernel:
    """A kernel to be compiled for the host, a row of the table ``HOST_KERNELS``.

    Attributes:
        name: of the CUDA C kernel in ``text``.
        mangled: a part of the names that Numba gives the kernels which do the same.
        text: CUDA C.
        block: (x, y) threads.
        arrays: how many pointers it takes, to ``T``.
        scalars: how many numbers after them, ``unsigned``.
        maps: how many tensor maps after those, each a ``HostMap *``.
        constant: the name of its ``__constant__`` array, if it has one.
    """

    name: str
    mangled: str
    text: str
    block: tuple[int, int]
    arrays: int
    scalars: int
    maps: int = 0
    constant: str = ""

    def source(self, number: int) -> str:
        """C++ in a namespace of its own."""
        arguments = [f"(T *)arrays[{i}]" for i in range(self.arrays)] + [f"scalars[{i}]" for i in range(self.scalars)]
        arguments += [f"arrays[{self.arrays + i}]" for i in range(self.maps)]
        x, y = self.block
        has_barriers = str("__syncthreads" in self.text).lower()
        return f"""
namespace kernel_{number} {{
{self.text.replace('extern "C"', "static")}
static void run(unsigned x, unsigned y, void **arrays, const unsigned *scalars)
{{
    on_host::launch({{x, y}}, {{{x}, {y}}}, {has_barriers}, [=] {{ {self.name}({", ".join(arguments)}); }});
}}
}}
"""

    def row(self, number: int) -> str:
        """Its row of the table."""
        x, y = self.block
        there = f"kernel_{number}::"
        constant = f"{there}{self.constant}, sizeof {there}{self.constant}" if self.constant else "nullptr, 0"
        names, takes = f'"{self.name}", "{self.mangled}"', f"{x}, {y}, {self.arrays}, {self.scalars}, {self.maps}"
        return f"{{{names}, {takes}, {there}run, {constant}}}, "


def port(case: Case) -> HostKernel:
    """The CUDA C port of a case; its Numba kernel has the same host form."""
    problem, by_numba = PROBLEMS[case.problem], numba_kernel(replace(case, compiler="numba"))
    by_nvrtc = cuda_c_kernel(replace(case, compiler="nvrtc"))
    takes = len(problem.arrays), len(problem.scalars(case))
    name = mangled(by_numba.function)
    return HostKernel(by_nvrtc.entry, name, by_nvrtc.source, by_numba.block, *takes, constant=by_nvrtc.constant)


def mangled(function: Callable[..., Any]) -> str:
    """How a function's name stands in the name that Numba gives its code: behind its length."""
    return f"{len(function.__name__)}{function.__name__}"


def compile_for_host(kernels: Sequence[HostKernel], folder: Path) -> Path:
    """A library with the table of these kernels."""
    sources = "".join(kernel.source(number) for number, kernel in enumerate(kernels))
    rows = "".join(kernel.row(number) for number, kernel in enumerate(kernels))
    table = f'extern "C" const HostKernel HOST_KERNELS[] = {{{rows}{{}}}};\n'
    source = folder / "kernels.cpp"
    source.write_text(f'#include "cuda_on_host.h"\n{sources}{table}')
    return compile_library(source, folder / "kernels.so", [HERE])


def compile_library(source: Path, library: Path, includes: Iterable[Path]) -> Path:
    """A shared library of one C++ file, under its own file name."""
    assert COMPILER is not None
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    paths = [f"-I{folder}" for folder in includes]
    subprocess.run([COMPILER, *flags, *paths, "-o", str(library), str(source), "-ldl"], check=True)
    return library


class _Row(ctypes.Structure):
    """``HostKernel`` of host_kernel.h."""

    _fields_ = (
        *((text, ctypes.c_char_p) for text in ("name", "mangled")),
        *((number, ctypes.c_uint) for number in ("block_x", "block_y", "arrays", "scalars", "maps")),
        ("run", ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)),
        ("constant", ctypes.c_void_p),
        ("constant_bytes", ctypes.c_ulong),
    )


def kernel_of(library: Path, number: int) -> Callable[[tuple[int, int], Sequence[Any], Sequence[int], bytes], None]:
    """A kernel of a library, to be called with a grid, NumPy arrays, scalars and its constant array's bytes."""
    row = (_Row * (number + 1)).in_dll(ctypes.CDLL(str(library)), "HOST_KERNELS")[number]

    def launch(grid: tuple[int, int], arrays: Sequence[Any], scalars: Sequence[int], constant: bytes) -> None:
        assert len(constant) == row.constant_bytes
        ctypes.memmove(row.constant, constant, len(constant))
        pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        numbers = (ctypes.c_uint * len(scalars))(*scalars)
        running = Thread(target=row.run, args=(*grid, pointers, numbers), daemon=True)
        running.start()
        running.join(LIMIT_S)
        assert not running.is_alive(), "a block waits for what no block hands over"

    return launch
