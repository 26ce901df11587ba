"""Machine code of a kernel: compiled by its toolchain for a compute capability, without a GPU.

It is what is done before a launch, so on a machine with the same libraries the GPU runs the same code.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from io import BytesIO

from elftools.elf.elffile import ELFFile

from smembench.kernels import registry
from smembench.kernels.program import GpuKernel
from smembench.model.case import Case
from smembench.toolchains.register_bank_conflicts import CAPABILITY, Instruction, MainLoop, main_loop
from smembench.toolchains.registry import toolchain_of

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
    if capability is None or not isinstance(program, GpuKernel):
        return None
    tile = (case.block, case.pad, case.stride, case.parameters, program.variant)
    key = (case.problem, case.kernel, case.compiler, case.dtype, *tile, capability)
    if key not in _compiled:
        try:
            log, code = toolchain_of(program).machine_code(case, program, capability)
            _compiled[key] = parse(log, code, with_loop=capability == CAPABILITY)
        except Exception:  # whichever library is missing raises its own; an explanation does without
            _compiled[key] = None
    return _compiled[key]


def parse(log: str, code: bytes, *, with_loop: bool = False) -> MachineCode | None:
    """The figures in ptxas's report and in the code it is of; None when the report has none."""
    used = re.search(r"Used (\d+) registers", log)
    if used is None:
        return None
    spilled = re.search(r"(\d+) bytes spill stores", log)
    loop = main_loop(instructions(code)) if with_loop else None
    return MachineCode(int(used[1]), int(spilled[1]) if spilled else 0, len(opcodes(code)), loop)


def opcodes(code: bytes) -> list[int]:
    """The lowest 12 bits of each instruction, which say what it does, without the padding.

    Args:
        code: a 64-bit ELF file of CUDA machine code; its text sections are read.
    """
    return [opcode for low, _ in instructions(code) if (opcode := low & _OPCODE) != _NOP]


def instructions(code: bytes) -> list[Instruction]:
    """All instructions of such a file, as numbers: of 16 bytes since compute capability 7.0."""
    sections = ELFFile(BytesIO(code)).iter_sections()
    texts = (section.data() for section in sections if section.name.startswith(".text"))
    return [pair for text in texts for pair in struct.iter_unpack("<QQ", text)]
