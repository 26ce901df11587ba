"""The source lines of a kernel's machine code, from compiling it again with line information."""

from __future__ import annotations

from bisect import bisect_right
from io import BytesIO
from typing import NamedTuple

from smembench.kernels import registry
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case
from smembench.toolchains import numba
from smembench.toolchains.kept_code import kept
from smembench.toolchains.machine_code import MachineCode, instructions, variant
from smembench.toolchains.memory_instructions import MemoryInstruction, Region, accesses, memory_instructions, regions

_BYTES = 16
"""Per instruction."""


class Lined(NamedTuple):
    """A load, a store or a barrier of a program, and its line in the source."""

    line: int
    region: Region
    access: MemoryInstruction


def with_lines(case: Case, capability: str, code: MachineCode) -> list[Lined]:
    """The loads, stores and barriers of a case's kernel, in their order.

    Empty if the compiler makes other ones with line information than without, as in ``code``. Those of a helper have
    the helper's lines, though Numba gives them the kernel's file.
    """
    program = registry.kernel_of(case).build(case)
    assert isinstance(program, NumbaKernel)
    try:
        key = ("with lines", *variant(case, program, capability))
        _, lined = kept(case, numba.TOOLCHAIN, key, lambda: ("", numba.TOOLCHAIN.with_lines(case, program, capability)))
        found = instructions(lined)
        lines = source_lines(lined, len(found))
    except Exception:  # a missing library raises its own; explanations work without lines
        return []
    if memory_instructions(found) != code.memory:
        return []
    issued = zip(lines, regions(found), found, strict=True)
    return [Lined(line, region, each) for line, region, word in issued for each in accesses(word)]


def source_lines(code: bytes, count: int) -> list[int]:
    """The line of each of the ``count`` instructions of an object file with one kernel; 0 where it has none.

    Raises:
        ValueError: without line information.
    """
    from elftools.dwarf.structs import DWARFStructs
    from elftools.elf.elffile import ELFFile

    dwarf = ELFFile(BytesIO(code)).get_dwarf_info(relocate_dwarf_sections=False)
    if dwarf.debug_line_sec is None:
        raise ValueError("the file has no line information")
    # The public way begins at a compilation unit, and NVIDIA's files have none.
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
    entries = dwarf._parse_line_program_at_offset(0, structs).get_entries()
    begins = sorted((entry.state.address, entry.state.line) for entry in entries if entry.state is not None)
    after = [bisect_right(begins, _BYTES * place, key=lambda begin: begin[0]) for place in range(count)]
    return [begins[at - 1][1] if at else 0 for at in after]
