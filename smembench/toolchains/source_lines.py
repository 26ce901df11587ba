"""The source lines of accesses in a kernel's machine code."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from io import BytesIO
from typing import Any, NamedTuple

from smembench.toolchains.memory_instructions import Guard, MemoryInstruction, Region, accesses, guards, regions
from smembench.toolchains.register_bank_conflicts import Instruction

_BYTES = 16
"""Per instruction."""


class Lined(NamedTuple):
    """A load, a store, an atomic, a barrier or a vote of a program, and its line in the source."""

    line: int
    region: Region
    access: MemoryInstruction
    guard: Guard = Guard()


def lined_accesses(code: bytes, instructions: Sequence[Instruction], kernel: str = "") -> tuple[Lined, ...]:
    """The loads, stores and barriers of a kernel, in their order; without line information they are all of line 0.

    A file with several kernels needs the name of the ``kernel``. Accesses of a helper have the helper's
    lines, though Numba gives them the kernel's file.
    """
    try:
        lines = source_lines(code, len(instructions), kernel)
    except Exception:  # a table of another compiler than Numba's raises what it will; explanations work without lines
        lines = [0] * len(instructions)
    issued = zip(lines, regions(instructions), guards(instructions), instructions, strict=False)
    return tuple(Lined(line, region, op, guard) for line, region, guard, word in issued for op in accesses(word))


def source_lines(code: bytes, count: int, kernel: str = "") -> list[int]:
    """The line of each of the ``count`` instructions of a file's kernel, named if it has several; 0 for no line."""
    from elftools.dwarf.structs import DWARFStructs
    from elftools.elf.elffile import ELFFile

    file = ELFFile(BytesIO(code))
    dwarf = file.get_dwarf_info(relocate_dwarf_sections=False)
    if dwarf.debug_line_sec is None:
        return [0] * count
    # The public way begins at a compilation unit, and NVIDIA's files have none.
    structs = DWARFStructs(little_endian=True, dwarf_format=32, address_size=8)
    entries = dwarf._parse_line_program_at_offset(0, structs).get_entries()
    states = _states_of(file, entries, kernel)
    begins = sorted((state.address, state.line) for state in states)
    after = [bisect_right(begins, _BYTES * place, key=lambda begin: begin[0]) for place in range(count)]
    return [begins[at - 1][1] if at else 0 for at in after]


def _states_of(file: Any, entries: Sequence[Any], kernel: str) -> list[Any]:
    """The rows of the line table that are a kernel's, all if it is not named.

    Each kernel has a sequence of rows, whose address is relocated to its section; relocations are in that order.
    """
    if not kernel:
        return [entry.state for entry in entries if entry.state is not None]
    symbols = file.get_section_by_name(".symtab")
    before_90, since_90 = map(file.get_section_by_name, (".rel.debug_line", ".rela.debug_line"))
    relocated = (since_90 or before_90).iter_relocations()
    of_sequences = [
        symbols.get_symbol(reloc["r_info_sym"]) for reloc in sorted(relocated, key=lambda reloc: reloc["r_offset"])
    ]
    names = [file.get_section(symbol["st_shndx"]).name for symbol in of_sequences]
    sequences: list[list[Any]] = [[]]
    for entry in entries:
        if entry.state is not None:
            sequences[-1].append(entry.state)
            if entry.state.end_sequence:
                sequences.append([])
    chosen = [rows for rows, name in zip(sequences, names, strict=False) if name == f".text.{kernel}"]
    return [state for rows in chosen for state in rows]


_ASSEMBLER = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOCATION = re.compile(r"^\s*\.loc\b.*$", re.MULTILINE)


def without_lines_of_assembler(ptx: str) -> str:
    """PTX whose inline assembler has the line of the statement that it belongs to.

    LLVM, and with it Triton, numbers the lines of the assembler's text from there on, as if it stood in the source.
    """

    def settled(match: re.Match[str]) -> str:
        first = _LOCATION.search(match[0])
        return match[0] if first is None else _LOCATION.sub(lambda _: first[0], match[0])

    return _ASSEMBLER.sub(settled, ptx)
