"""Registers of a kernel: compiled for a compute capability by Numba and nvJitLink, without a GPU.

It is what Numba does before a launch, so on a machine with the same libraries the GPU runs the same code.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

from smembench.case import Case
from smembench.kernels import registry
from smembench.problems import PROBLEMS


@dataclass(frozen=True, slots=True)
class Registers:
    """32-bit registers of a thread, and the bytes of its stores of those that do not fit, to local memory."""

    count: int
    spilled_bytes: int


_compiled: dict[tuple[object, ...], Registers | None] = {}
"""Kernels close over block, pad, stride and dtype and never over sizes, so each is compiled once for all sizes."""


def registers_of(case: Case, capability: str | None) -> Registers | None:
    """Registers of a CUDA case's kernel.

    None without a compute capability, for a library's function, and where no compiler is found or none that knows
    the kernel and the capability: Numba needs the NVVM and NVRTC libraries, and nvJitLink comes with them
    (``pip install smembench[cu13]``).
    """
    if capability is None:
        return None
    key = (case.problem, case.kernel, case.dtype, case.block, case.pad, case.stride, capability)
    if key not in _compiled:
        try:
            _compiled[key] = _compile(case, capability)
        except Exception:  # whichever library is missing raises its own; an explanation does without
            _compiled[key] = None
    return _compiled[key]


def _compile(case: Case, capability: str) -> Registers | None:
    program = registry.kernel_of(case).build(case)
    if program.on_host:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a missing nvJitLink, which is an answer here
        return parse(_assemble(_ptx(program.function, case, capability), capability))


def _ptx(function: Any, case: Case, capability: str) -> str:
    from smembench.cuda_api import cuda, number, uint32

    problem = PROBLEMS[case.problem]
    arrays = [number(case.dtype)[::1]] * len(problem.arrays)
    scalars = [uint32] * len(problem.scalars(case))
    major, minor = capability.split(".")
    ptx, _ = cuda.compile_ptx(function, (*arrays, *scalars), cc=(int(major), int(minor)))
    return str(ptx)


def _assemble(ptx: str, capability: str) -> str:
    """What ptxas, inside nvJitLink, says of the code it makes."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch=f"sm_{capability.replace('.', '')}", ptxas_options=["-v"])
    linker = Linker(ObjectCode.from_ptx(ptx.encode()), options=options)
    linker.link("cubin")
    return str(linker.get_info_log())


def parse(log: str) -> Registers | None:
    """The figures in ptxas's report; None when it has none."""
    used = re.search(r"Used (\d+) registers", log)
    if used is None:
        return None
    spilled = re.search(r"(\d+) bytes spill stores", log)
    return Registers(int(used[1]), int(spilled[1]) if spilled else 0)
