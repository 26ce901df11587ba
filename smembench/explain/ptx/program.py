"""PTX kernels: instructions with their lines, parameters, registers and variables (PTX ISA, "Syntax")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.launches.ptx_entry import TYPES, split
from smembench.model.hardware import MAX_THREADS
from smembench.toolchains.loaded import Parameter

_ENDS = ("bra", "brx", "ret", "exit", "trap", "bar", "barrier")
_ASKS = ("try_wait", "test_wait")

ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:([+-])\s*(-?\w+))?\s*\]")
"""An address: a register, variable or number, and an offset with its sign."""

NAME = re.compile(r"(?<!\.)%?[A-Za-z_$][\w$]*")
"""A name; the x of ``%tid.x`` is none."""


class Place(NamedTuple):
    """A line of a source file, by the file's number; 0 where it is not known."""

    file: int = 0
    line: int = 0


@dataclass(slots=True)
class Instruction:
    """An instruction.

    Attributes:
        opcode: with its modifiers, such as ``ld.shared.v4.f32``; ``parts`` are these one by one.
        operands: as they are written.
        guard: the register of its predicate, "" without one; ``negated`` as by ``@!``.
        space: the state space of a memory access; ``generic`` if none is written.
        place: the statement; ``called_from`` the line of the kernel into which it was inlined, else the same.
        targets, sources: registers that it writes, and that it reads beside those of addresses and the guard.
    """

    opcode: str
    operands: list[str]
    guard: str
    negated: bool
    place: Place
    called_from: Place
    parts: tuple[str, ...] = ()
    space: str = "generic"
    targets: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The opcode without modifiers."""
        return self.parts[0]

    @property
    def ends(self) -> bool:
        """True if threads may go on elsewhere after it, or wait."""
        return self.root in _ENDS or (self.root == "mbarrier" and any(part in _ASKS for part in self.parts))

    @property
    def by_name(self) -> bool:
        """True if it accesses a parameter of the kernel, or of a call, by its name."""
        return self.space == "param" and not any("%" in text for text in self.addresses)

    @property
    def types(self) -> list[str]:
        """The types among its modifiers."""
        return [part for part in self.parts[1:] if part in TYPES]

    @property
    def elements(self) -> int:
        """Elements of a vector that it loads or stores, or 1."""
        return next((int(part[1]) for part in self.parts if part in ("v2", "v4", "v8")), 1)

    @property
    def bytes(self) -> int:
        """Bytes per lane of a load or a store."""
        return np.dtype(TYPES[self.types[-1]]).itemsize * self.elements

    @property
    def addresses(self) -> list[str]:
        """The operands in brackets."""
        return [operand for operand in self.operands if operand.startswith("[")]


class Variable(NamedTuple):
    """A variable in shared, local, global or constant memory; ``begin`` is its offset in shared and local memory."""

    space: str
    name: str
    bytes: int
    begin: int = 0
    data: NDArray[np.uint8] | None = None


@dataclass(slots=True)
class PtxKernel:
    """A kernel: ``labels`` are numbers of instructions, ``registers`` types by name or by prefix, as declared.

    ``tables`` are the labels that ``brx.idx`` chooses from. ``cluster`` are the blocks of a cluster along each axis, if
    it is compiled for a size, ``most_blocks`` the most of them, ``explicit_cluster`` is whether it is launched in
    clusters only, and ``blocks_are_clusters`` whether its grid counts these. ``shared_bytes`` are those of its
    static variables; dynamic shared memory follows them. ``block`` are the threads of a block along each axis, if it is
    compiled for these alone, ``most_threads`` the most of them. ``shapes`` are, where they are known, the bytes of an
    element and the sides of shared arrays, by name.
    """

    name: str
    parameters: list[Parameter]
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)
    shared_bytes: int = 0
    local_bytes: int = 0
    cluster: tuple[int, int, int] | None = None
    most_blocks: int = 16
    explicit_cluster: bool = False
    blocks_are_clusters: bool = False
    block: tuple[int, int, int] | None = None
    most_threads: int = MAX_THREADS
    shapes: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    @property
    def dynamic_begin(self) -> int:
        """The byte of shared memory at which the dynamic part begins, behind the static variables."""
        dynamic = [var.begin for var in self.variables.values() if var.space == "shared" and not var.bytes]
        return max([self.shared_bytes, *dynamic])

    def type_of(self, register: str) -> str | None:
        """The PTX type of a register; None for what is no register."""
        kind = self.registers.get(register)
        return kind if kind is not None else self.registers.get(register.rstrip("0123456789"))

    def name_parameters(self, names: Sequence[str]) -> None:
        """Give the parameters other names, which are as many and differ."""
        new = dict(zip((parameter.name for parameter in self.parameters), names, strict=True))
        for instruction in self.code:
            renamed = (NAME.sub(lambda match: new.get(match[0], match[0]), text) for text in instruction.operands)
            instruction.operands = list(renamed)
        self.parameters = [parameter._replace(name=new[parameter.name]) for parameter in self.parameters]

    def registers_in(self, text: str) -> list[str]:
        """The registers that a text names."""
        return [name for name in NAME.findall(text) if self.type_of(name) is not None]


def elements(text: str) -> list[str]:
    """The registers of a vector, or the one register."""
    return split(text.strip("{} "))


def results(given: Instruction) -> list[str]:
    """The targets as written, of which ``_`` takes nothing: ``%p|%q``."""
    return [text.strip() for text in given.operands[0].split("|")]
