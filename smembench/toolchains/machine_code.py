"""Machine code of a kernel: compiled for a compute capability by Numba and nvJitLink or by NVRTC, without a GPU.

It is what is done before a launch, so on a machine with the same libraries the GPU runs the same code. Numba's launches
optimise at link time: NVVM makes LTO-IR, not PTX, and nvJitLink optimises it once more before ptxas. Through PTX the
code is another one, longer for kernels with a tile.
"""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import StringIO

from smembench.kernels import registry
from smembench.kernels.common.cuda_c import Source
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.registry import Program
from smembench.model.case import Case
from smembench.toolchains.register_bank_conflicts import CAPABILITY, Instruction, MainLoop, main_loop

_INSTRUCTION_BYTES = 16  # since compute capability 7.0
_OPCODE, _NOP = 0xFFF, 0x918


@dataclass(frozen=True, slots=True)
class MachineCode:
    """32-bit registers of a thread, bytes of stores of those that do not fit, to local memory, and instructions.

    ``instructions`` counts those of the program, however often each is executed, without the padding at its end.
    ``loop`` is of its multiply-adds, where the model of the register file knows the compute capability.
    """

    registers: int
    spilled_bytes: int
    instructions: int
    loop: MainLoop | None = None


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
    tile = (case.block, case.pad, case.stride, case.parameters, program.variant)
    key = (case.problem, case.kernel, case.compiler, case.dtype, *tile, capability)
    if key not in _compiled:
        try:
            log, code = assembled(case, program, capability)
            found = parse(log, code)
            loop = main_loop(instructions(code)) if capability == CAPABILITY else None
            _compiled[key] = found and replace(found, loop=loop)
        except Exception:  # whichever library is missing raises its own; an explanation does without
            _compiled[key] = None
    return _compiled[key]


def assembled(case: Case, program: Program, capability: str) -> tuple[str, bytes]:
    """What ptxas says of the code it makes of a CUDA case's kernel, and the code, an ELF file.

    Raises:
        Exception: of the library that is missing, or of the compiler.
    """
    if isinstance(program.function, Source):
        return _by_nvrtc(program.function, capability)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a missing nvJitLink, which is an answer here
        return _link(by_nvvm(case, program, capability), capability, at_link_time=not program.constant)


def _by_nvrtc(source: Source, capability: str) -> tuple[str, bytes]:
    from smembench.toolchains import nvrtc

    log = StringIO()
    code = bytes(nvrtc.compiled(source, capability, log).code)
    return log.getvalue(), code


def by_nvvm(case: Case, program: Program, capability: str) -> bytes:
    """LTO-IR for the link-time optimiser; PTX of a program with a variable that it would hide."""
    from smembench.kernels.numba_cuda import cuda, number, uint32

    problem = PROBLEMS[case.problem]
    arrays = [number(case.dtype)[::1]] * len(problem.arrays)
    scalars = [uint32] * len(problem.scalars(case))
    major, minor = capability.split(".")
    code, _ = cuda.compile(
        program.function,
        (*arrays, *scalars),
        device=False,
        abi="numba",
        output="ptx" if program.constant else "ltoir",
        cc=(int(major), int(minor)),
        launch_bounds=program.launch_bounds,
    )
    return code.encode() if isinstance(code, str) else bytes(code)


def _link(code: bytes, capability: str, *, at_link_time: bool) -> tuple[str, bytes]:
    from cuda.core import Linker, LinkerOptions, ObjectCode

    arch = f"sm_{capability.replace('.', '')}"
    # What the linker finds in the driver's cache comes without a report.
    options = LinkerOptions(arch=arch, link_time_optimization=at_link_time or None, ptxas_options=["-v"], no_cache=True)
    linker = Linker(ObjectCode.from_ltoir(code) if at_link_time else ObjectCode.from_ptx(code), options=options)
    linked = bytes(linker.link("cubin").code)
    return str(linker.get_info_log()), linked


def parse(log: str, code: bytes) -> MachineCode | None:
    """The figures in ptxas's report and in the code it is of; None when the report has none."""
    used = re.search(r"Used (\d+) registers", log)
    if used is None:
        return None
    spilled = re.search(r"(\d+) bytes spill stores", log)
    return MachineCode(int(used[1]), int(spilled[1]) if spilled else 0, len(opcodes(code)))


def opcodes(code: bytes) -> list[int]:
    """The lowest 12 bits of each instruction, which say what it does, without the padding.

    Args:
        code: a 64-bit ELF file of CUDA machine code; its text sections are read.
    """
    return [opcode for low, _ in instructions(code) if (opcode := low & _OPCODE) != _NOP]


def instructions(code: bytes) -> list[Instruction]:
    """All instructions of such a file, as numbers."""
    return [
        struct.unpack_from("<QQ", text, at)
        for text in _text_sections(code)
        for at in range(0, len(text), _INSTRUCTION_BYTES)
    ]


def _text_sections(code: bytes) -> Iterator[bytes]:
    """Contents of the sections named .text…, by the ELF-64 object file format."""
    (table,) = struct.unpack_from("<Q", code, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", code, 0x3A)
    # Of a section header: its name's place among the names, and where its contents begin and how long they are.
    headers = [struct.unpack_from("<I20xQQ", code, table + index * size) for index in range(count)]
    for name, begin, length in headers:
        if code.startswith(b".text", headers[of_names][1] + name):
            yield code[begin : begin + length]
