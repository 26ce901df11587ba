"""Machine code of a kernel: compiled for a compute capability by Numba or NVRTC and nvJitLink, without a GPU.

It is what is done before a launch, so on a machine with the same libraries the GPU runs the same code.
"""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

from smembench.case import Case
from smembench.kernels import registry
from smembench.kernels.cuda_c import Source
from smembench.kernels.registry import Program
from smembench.problems import PROBLEMS

_INSTRUCTION_BYTES = 16  # since compute capability 7.0
_OPCODE, _NOP = 0xFFF, 0x918


@dataclass(frozen=True, slots=True)
class MachineCode:
    """32-bit registers of a thread, bytes of stores of those that do not fit, to local memory, and instructions.

    ``instructions`` counts those of the program, however often each is executed, without the padding at its end.
    """

    registers: int
    spilled_bytes: int
    instructions: int


_compiled: dict[tuple[object, ...], MachineCode | None] = {}
"""A kernel closes over its block, pad and dtype and never over sizes, so each variant is compiled once for all."""


def machine_code(case: Case, capability: str | None) -> MachineCode | None:
    """What a CUDA case's kernel is compiled to.

    None without a compute capability, for a library's function, and where no compiler is found or none that knows
    the kernel and the capability: Numba needs the NVVM and NVRTC libraries, and nvJitLink comes with them
    (``pip install smembench[cu13]``).
    """
    program = registry.kernel_of(case).build(case)
    if capability is None or program.on_host:
        return None
    tile = (case.block, case.pad, case.stride, program.variant)
    key = (case.problem, case.kernel, case.compiler, case.dtype, *tile, capability)
    if key not in _compiled:
        try:
            _compiled[key] = _compile(case, program, capability)
        except Exception:  # whichever library is missing raises its own; an explanation does without
            _compiled[key] = None
    return _compiled[key]


def _compile(case: Case, program: Program, capability: str) -> MachineCode | None:
    if isinstance(program.function, Source):
        return parse(*_by_nvrtc(program.function, capability))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a missing nvJitLink, which is an answer here
        return parse(*_assemble(_ptx(case, program, capability), capability))


def _by_nvrtc(source: Source, capability: str) -> tuple[str, bytes]:
    """What ptxas, inside NVRTC, says of the code it makes, and the code, an ELF file."""
    from smembench.devices.nvrtc import compiled

    log = StringIO()
    code = bytes(compiled(source, capability, log).code)
    return log.getvalue(), code


def _ptx(case: Case, program: Program, capability: str) -> bytes:
    from smembench.cuda_api import cuda, number, uint32

    problem = PROBLEMS[case.problem]
    arrays = [number(case.dtype)[::1]] * len(problem.arrays)
    scalars = [uint32] * len(problem.scalars(case))
    major, minor = capability.split(".")
    signature, bounds = (*arrays, *scalars), program.launch_bounds
    ptx, _ = cuda.compile_ptx(program.function, signature, cc=(int(major), int(minor)), launch_bounds=bounds)
    return str(ptx).encode()


def _assemble(ptx: bytes, capability: str) -> tuple[str, bytes]:
    """What ptxas, inside nvJitLink, says of the code it makes, and the code, an ELF file."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch=f"sm_{capability.replace('.', '')}", ptxas_options=["-v"])
    linker = Linker(ObjectCode.from_ptx(ptx), options=options)
    code = bytes(linker.link("cubin").code)
    return str(linker.get_info_log()), code


def parse(log: str, code: bytes) -> MachineCode | None:
    """The figures in ptxas's report and in the code it is of; None when the report has none."""
    used = re.search(r"Used (\d+) registers", log)
    if used is None:
        return None
    spilled = re.search(r"(\d+) bytes spill stores", log)
    return MachineCode(int(used[1]), int(spilled[1]) if spilled else 0, instructions(code))


def instructions(code: bytes) -> int:
    """Instructions in the text sections of a 64-bit ELF file of CUDA machine code."""
    return sum(
        struct.unpack_from("<Q", text, at)[0] & _OPCODE != _NOP
        for text in _text_sections(code)
        for at in range(0, len(text), _INSTRUCTION_BYTES)
    )


def _text_sections(code: bytes) -> Iterator[bytes]:
    """Contents of the sections named .text…, by the ELF-64 object file format."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", code, 0x3A)
    # Of a section header: its name's place among the names, and where its contents begin and how long they are.
    headers = [struct.unpack_from("<I20xQQ", code, table + index * size) for index in range(count)]
    for name, begin, length in headers:
        if code.startswith(b".text", headers[of_names][1] + name):
            yield code[begin : begin + length]
