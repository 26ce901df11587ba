"""The source lines of accesses in a kernel's machine code, from compiling it again with line information."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import NamedTuple

from smembench.kernels import registry
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case
from smembench.toolchains import numba
from smembench.toolchains.kept_code import kept
from smembench.toolchains.machine_code import instructions, variant
from smembench.toolchains.memory_instructions import MemoryInstruction, Region, accesses, memory_instructions, regions

_BYTES = 16
"""Per instruction."""


def with_lines(case: Case, capability: str) -> bytes:
    """The machine code of a case's kernel with line information, from disk if it was compiled before.

    Raises:
        Exception: a missing library's.
    """
    program = registry.kernel_of(case).build(case)
    assert isinstance(program, NumbaKernel)
    key = ("with lines", *variant(case, program, capability))
    return kept(case, numba.TOOLCHAIN, key, lambda: ("", numba.TOOLCHAIN.with_lines(case, program, capability)))[1]


class Lined(NamedTuple):
    """A load, a store or a barrier of a program, and its line in the source."""

    line: int
    region: Region
    access: MemoryInstruction


def lined_accesses(lined: Callable[[], bytes], memory: Mapping[MemoryInstruction, int]) -> list[Lined]:
    """The loads, stores and barriers of a kernel, in their order.

    Empty if the compiler makes other ones with line information, as ``lined`` returns it, than without, as in
    ``memory``. Those of a helper have the helper's lines, though Numba gives them the kernel's file.
    """
    try:
        by_line = lined()
        found = instructions(by_line)
        lines = source_lines(by_line, len(found))
    except Exception:  # a missing library raises its own; explanations work without lines
        return []
    if memory_instructions(found) != memory:
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
