"""CUDA C twins run on the host: their source as C++, a thread for each CUDA thread, a barrier for __syncthreads.

``__constant__`` arrays are variables of the library, filled by name before a launch as the device fills them.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from smembench.axes import Block
from smembench.case import Case
from smembench.kernels import registry
from smembench.kernels.registry import Kernel
from smembench.problems import PROBLEMS

TWINS = [kernel for kernel in registry.kernels() if kernel.compiler == "nvrtc"]
SIZES = [(1, 1, 1), (5, 7, 3), (9, 4, 6), (33, 21, 17), (8, 4, 12), (72, 140, 20)]
"""m, n and k: one element, ragged every way, and whole vectors."""

CUDA = """
#include <barrier>
#include <thread>
#include <vector>
struct Index { unsigned x, y; };
thread_local Index threadIdx, blockIdx;
static std::barrier<> *arrived;
#define __global__
#define __shared__ static
#define __constant__
#define __syncthreads() arrived->arrive_and_wait()
#define __launch_bounds__(threads, blocks)
"""
LAUNCH = """
extern "C" void launch(unsigned gx, unsigned gy, unsigned bx, unsigned by, {parameters})
{{
    for (unsigned block = 0; block < gx * gy; ++block) {{
        std::barrier<> all(bx * by);
        arrived = &all;
        std::vector<std::thread> threads;
        for (unsigned thread = 0; thread < bx * by; ++thread)
            threads.emplace_back([=] {{
                blockIdx = {{block % gx, block / gx}};
                threadIdx = {{thread % bx, thread / bx}};
                {entry}({arguments});
                arrived->arrive_and_drop();
            }});
        for (std::thread &thread : threads)
            thread.join();
    }}
}}
"""


def on_host(kernel: Kernel, case: Case, folder: Path) -> ctypes.CDLL:
    """A library of the host with the twin's launch."""
    source = kernel.build(case).function
    problem = PROBLEMS[kernel.problem]
    arrays = [f"a{index}" for index in range(len(problem.arrays))]
    scalars = [f"s{index}" for index in range(len(problem.scalars(case)))]
    parameters = ", ".join([f"T *{name}" for name in arrays] + [f"unsigned {name}" for name in scalars])
    launch = LAUNCH.format(parameters=parameters, entry=source.entry, arguments=", ".join([*arrays, *scalars]))
    (folder / "twin.cpp").write_text(CUDA + source.text + launch)
    command = ["g++", "-std=c++20", "-shared", "-fPIC", "-pthread", "-w", "-o", "twin.so", "twin.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "twin.so"))


@pytest.mark.skipif(not shutil.which("g++"), reason="needs g++")
@pytest.mark.parametrize("kernel", TWINS, ids=lambda kernel: kernel.name)
def test_a_twin_is_right_on_ragged_sizes(kernel: Kernel, tmp_path: Path) -> None:
    problem, pad = PROBLEMS[kernel.problem], 1 if kernel.pad else 0
    (*_, block) = kernel.default_blocks or (Block(4, 4) if kernel.name == "tiled" else Block(8, 2),)
    library = on_host(kernel, Case(kernel.problem, kernel.name, "cuda:0", "float32", 8, 8, 8, block, pad), tmp_path)
    done = 0
    for m, n, k in SIZES:
        strides: tuple[int | None, ...] = (None, max(n, k) + 4) if kernel.strided else (None,)
        for stride in strides:
            depth = k if "k" in problem.size_axes else None
            case = Case(kernel.problem, kernel.name, "cuda:0", "float32", m, n, depth, block, pad, stride=stride)
            if kernel.refuse(case):
                continue
            done += 1
            inputs = problem.inputs(case, seed=1)
            output = np.full(problem.output_length(case) * 4, 0xFF, np.uint8).view(np.float32)
            program = kernel.build(case)
            if program.constant:
                values = inputs[problem.arrays.index(program.constant) - 1].tobytes()
                ctypes.memmove((ctypes.c_char * len(values)).in_dll(library, program.constant), values, len(values))
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in (output, *inputs)]
            library.launch(*program.grid, *block, *pointers, *problem.scalars(case))
            verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), output)
            assert verdict.passed, f"{case.id}: {verdict.detail}"
    assert done >= 2
