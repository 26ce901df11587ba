"""Machine code of a kernel: registers, spills and instructions, for a compute capability and without a GPU.

The toolchain compiles it as it does for a launch, so a GPU runs the same code if the libraries are the same.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from smembench.kernels import registry
from smembench.kernels.program import GpuKernel
from smembench.model.case import Case
from smembench.toolchains import cubin
from smembench.toolchains.kept_code import kept, variant
from smembench.toolchains.mnemonics import mnemonic
from smembench.toolchains.register_bank_conflicts import CAPABILITY, Instruction, MainLoop, main_loop
from smembench.toolchains.registry import Refused, toolchain_of
from smembench.toolchains.source_lines import Lined, lined_accesses

_OPCODE, _NOP = 0xFFF, 0x918


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The machine code of a kernel.

    Attributes:
        registers: 32-bit registers per thread.
        spilled_bytes: bytes of registers stored to local memory, per thread; without ptxas's report all local memory.
        instructions: instructions of the program, without the padding at its end.
        loop: its main loop of multiply-adds; None on compute capabilities for which the model of the register file
            does not hold.
        kinds: the number of instructions by mnemonic.
        lined: those that load, store or wait for others, in order and with their lines.
    """

    registers: int
    spilled_bytes: int
    instructions: int
    loop: MainLoop | None = None
    kinds: Mapping[str, int] = field(default_factory=dict, compare=False)
    lined: Sequence[Lined] = field(default=(), compare=False)


_compiled: dict[tuple[object, ...], MachineCode | None] = {}
"""Code by variant: a kernel closes over its block, pad and dtype never over sizes, so one compilation serves all."""


def machine_code(case: Case, capability: str | None) -> MachineCode | None:
    """The machine code of a CUDA case's kernel.

    None without a compute capability, for a library call, if a library of the toolchain is missing, and if the kernel
    does not compile for the capability. What was compiled before is read from disk. Numba needs the NVVM, NVRTC and
    nvJitLink libraries (``pip install smembench[cu13]``).

    Raises:
        Refused: if the toolchain's language does not take the kernel.
    """
    program = registry.kernel_of(case).build(case)
    if capability is None or not isinstance(program, GpuKernel):
        return None
    key = variant(case, program, capability)
    if key not in _compiled:
        try:
            toolchain = toolchain_of(program, case.compiler)
            log, code = kept(case, toolchain, key, lambda: toolchain.machine_code(case, program, capability))
            _compiled[key] = parse(log, code, with_loop=capability == CAPABILITY)
        except Refused:
            raise
        except Exception:  # a missing library raises its own; explanations work without machine code
            _compiled[key] = None
    return _compiled[key]


def parse(log: str, code: bytes, *, with_loop: bool = False, kernel: str = "") -> MachineCode | None:
    """The figures in ptxas's report and in the code that it describes; None if the report has no registers.

    Without a report, registers and local memory are read from the file itself. In a file with several kernels they are
    those of the ``kernel`` of this name.
    """
    used = re.search(r"Used (\d+) registers", log)
    if used is None and log:
        return None
    spilled = re.search(r"(\d+) bytes spill stores", log)
    registers, local = (int(used[1]), int(spilled[1]) if spilled else 0) if used else cubin.usage(code, kernel)
    every = instructions(code, kernel)
    program = [opcode for low, _ in every if (opcode := low & _OPCODE) != _NOP]
    loop = main_loop(every) if with_loop else None
    kinds = Counter(map(mnemonic, program))
    return MachineCode(registers, local, len(program), loop, kinds, lined_accesses(code, every, kernel))


def opcodes(code: bytes) -> list[int]:
    """The opcode, the lowest 12 bits, of each instruction; without the padding.

    Args:
        code: a 64-bit ELF file of CUDA machine code; its text sections are read.
    """
    return [opcode for low, _ in instructions(code) if (opcode := low & _OPCODE) != _NOP]


def instructions(code: bytes, kernel: str = "") -> list[Instruction]:
    """All instructions of such a file, or of a kernel in it, 16 bytes each (compute capability 7.0 and later)."""
    texts = (text for name, text in cubin.instructions(code).items() if kernel in ("", name))
    return [pair for text in texts for pair in struct.iter_unpack("<QQ", text)]
