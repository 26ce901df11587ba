"""Read an object file of machine code: names, registers, local memory and variables of its kernels."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO

_TEXT = ".text."
_INFO = ".nv.info"
_REGISTERS, _FRAME = 0x2F, 0x11
"""Attributes of the section ``.nv.info``, EIATTR_REGCOUNT and EIATTR_FRAME_SIZE as ``cuobjdump -elf`` names them."""
_PARAMETER, _SIZE_SHIFT = 0x17, 18
"""EIATTR_KPARAM_INFO of a kernel's own section: an index, the parameter's number, its offset, and flags with its size.
"""
_HASH = 16
"""Hexadecimal digits of a hash."""
_PAYLOAD = 4
"""The format of an attribute whose value follows it, as many bytes as its last two say."""


def entry(code: bytes) -> str:
    """The name of its only kernel, as the file has it.

    Raises:
        ValueError: if it has several, or none.
    """
    (name,) = instructions(code)
    return name


def instructions(code: bytes) -> dict[str, bytes]:
    """The instructions of each kernel, by its name."""
    return {name.removeprefix(_TEXT): data for name, data in _sections(code) if name.startswith(_TEXT)}


def code_hash(code: bytes, kernel: str) -> str:
    """A hash of a kernel's instructions, its constants, and its registers and local memory; not of names and lines."""
    wanted = re.compile(rf"\.(text|nv\.constant\d+)\.{re.escape(kernel)}")
    of_kernel = (data for name, data in _sections(code) if wanted.fullmatch(name))
    return sha256(b"\0".join([*of_kernel, repr(usage(code, kernel)).encode()])).hexdigest()[:_HASH]


def parameters(code: bytes, kernel: str) -> list[int]:
    """The bytes of each parameter of a kernel, in order."""
    (data,) = (data for name, data in _sections(code) if name == f"{_INFO}.{kernel}")
    values = (struct.unpack("<IHHI", value) for attribute, value in _attributes(data) if attribute == _PARAMETER)
    return [flags >> _SIZE_SHIFT for _, _, _, flags in sorted(values, key=lambda value: value[1])]


def usage(code: bytes, kernel: str = "") -> tuple[int, int]:
    """Registers and bytes of local memory per thread, of a kernel, or of the one that takes most."""
    from elftools.elf.elffile import ELFFile

    most = {_REGISTERS: 0, _FRAME: 0}
    symbols = ELFFile(BytesIO(code)).get_section_by_name(".symtab")
    for name, data in _sections(code):
        if name == _INFO:
            for attribute, value in _attributes(data):
                if attribute in most:
                    symbol, number = struct.unpack("<II", value)
                    if not kernel or symbols.get_symbol(symbol).name == kernel:
                        most[attribute] = max(most[attribute], number)
    return most[_REGISTERS], most[_FRAME]


def variables(code: bytes) -> dict[str, int]:
    """Bytes of each variable that the source declares, by its name."""
    from elftools.elf.elffile import ELFFile

    symbols = ELFFile(BytesIO(code)).get_section_by_name(".symtab").iter_symbols()
    sizes = {symbol.name: int(symbol["st_size"]) for symbol in symbols if symbol["st_info"]["type"] == "STT_OBJECT"}
    return {name: size for name, size in sizes.items() if not name.startswith(".")}


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Attributes of a section with their values; four bytes each, and then the value of those that have one."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _PAYLOAD:
            yield attribute, data[at : at + size]
            at += size


def _sections(code: bytes) -> Iterator[tuple[str, bytes]]:
    from elftools.elf.elffile import ELFFile

    return ((section.name, section.data()) for section in ELFFile(BytesIO(code)).iter_sections())
