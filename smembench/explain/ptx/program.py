"""PTX kernels: instructions with their lines, parameters, registers and variables (PTX ISA, "Syntax")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TYPES: Mapping[str, str] = {
    "pred": "?",
    **{
        f"{kind}{bits}": f"{letter}{bits // 8}"
        for kind, letter in (("u", "u"), ("s", "i"), ("b", "u"))
        for bits in (8, 16, 32, 64)
    },
    "f16": "f2",
    "f32": "f4",
    "f64": "f8",
    "bf16": "u2",
    "f16x2": "u4",
    "bf16x2": "u4",
    "tf32": "u4",
    "b128": "V16",
}
"""NumPy's types of PTX's; what NumPy lacks is kept as bits."""

ENDS = ("bra", "brx", "ret", "exit", "trap", "bar", "barrier")
"""Instructions after which threads may go on elsewhere, or wait."""

ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:([+-])\s*(-?\w+))?\s*\]")
"""An address: a register, variable or number, and an offset with its sign."""

NAME = re.compile(r"%?[A-Za-z_$][\w$]*")


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
    targets: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The opcode without modifiers."""
        return self.parts[0]

    @property
    def space(self) -> str:
        """The state space of a memory access; ``generic`` if none is written."""
        for part in self.parts:
            name = part.partition("::")[0]
            if name in ("shared", "global", "local", "const", "param"):
                return name
        return "generic"

    @property
    def types(self) -> list[str]:
        """The types among its modifiers."""
        return [part for part in self.parts[1:] if part in TYPES]

    @property
    def addresses(self) -> list[str]:
        """Its operands in brackets."""
        return [operand for operand in self.operands if operand.startswith("[")]


class Parameter(NamedTuple):
    """A parameter of a kernel: PTX type and size; a structure is of type ``b8`` with many bytes."""

    name: str
    type: str
    bytes: int


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

    ``tables`` are the labels that ``brx.idx`` chooses from. ``shared_bytes`` are those of its static variables;
    dynamic shared memory follows them.
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

    def type_of(self, register: str) -> str | None:
        """The PTX type of a register; None for what is no register."""
        found = self.registers.get(register)
        return found if found is not None else self.registers.get(register.rstrip("0123456789"))

    def registers_in(self, text: str) -> list[str]:
        """The registers that a text names."""
        return [name for name in NAME.findall(text) if self.type_of(name) is not None]


def split(text: str) -> list[str]:
    """Operands apart by commas, those inside of brackets and braces left together."""
    found, depth, begin = [], 0, 0
    for number, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            found.append(text[begin:number].strip())
            begin = number + 1
    return [*found, text[begin:].strip()] if text.strip() else []


def _closing(text: str, begin: int) -> int:
    """Where the brace that was opened before ``begin`` is closed."""
    depth = 1
    for match in re.finditer(r"[{}]", text[begin:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return begin + match.start()
    return len(text)


def _kernel(name: str, parameters: str, body: str, of_module: Sequence[tuple[Variable, int]]) -> PtxKernel:
    kernel = PtxKernel(name, [_parameter(each) for each in split(parameters)])
    used = set(_NAME.findall(body))
    dynamic = []
    for variable, align in of_module:
        if variable.name not in used:
            continue
        if variable.space == "shared" and not variable.bytes:
            dynamic.append((variable, align))
        else:
            _declare(kernel, variable, align)
    _Body(kernel).read(body)
    for variable, align in dynamic:
        begin = -(-kernel.shared_bytes // align) * align
        kernel.variables[variable.name] = variable._replace(begin=begin)
    for instruction in kernel.code:
        _describe(kernel, instruction)
    return kernel


def _parameter(text: str) -> Parameter:
    words = re.sub(r"\.ptr\b(\s*\.\w+)*?(\s*\.align\s+\d+)?(?=\s+[\w$]+\s*$)|\.align\s+\d+", " ", text).split()
    name, _, count = words[-1].partition("[")
    kind = next(word[1:] for word in words if word[1:] in TYPES)
    itemsize = np.dtype(TYPES[kind]).itemsize
    return Parameter(name, kind, int(count.rstrip("]")) * itemsize if count else itemsize)


def _variable(text: str) -> tuple[Variable, int] | None:
    """A variable and its alignment; None for another statement."""
    match = _VARIABLE.search(text)
    if match is None or match[3] not in TYPES:
        return None
    space, vector, kind, name, sides, content = match.groups()
    itemsize = np.dtype(TYPES[kind]).itemsize * int(vector or 1)
    count = int(np.prod([int(side or 0) for side in re.findall(r"\[(\d*)\]", sides)])) if sides else 1
    align = _ALIGN.search(text)
    data = None
    if count and (space == "global" or (space == "const" and content)):  # without a content the host sets constants
        data = _content(content, TYPES[kind], count * itemsize)
    return Variable(space, name, count * itemsize, data=data), int(align[1]) if align else itemsize


def _content(text: str | None, kind: str, size: int) -> NDArray[np.uint8] | None:
    """The bytes of an initialised variable, zeros without an initialiser; None for one that holds addresses."""
    found = np.zeros(size, np.uint8)
    values = split(text.strip().strip("{}")) if text else []
    try:
        made = [_number(value, kind) for value in values]
    except ValueError:
        return None
    given = np.array(made, kind.replace("i", "u")).view(np.uint8)
    found[: len(given)] = given
    return found


def _number(text: str, kind: str) -> object:
    if text[:2].lower() in ("0f", "0d"):
        return (
            np.uint64(int(text[2:], 16))
            .astype("u4" if text[1] in "fF" else "u8")
            .view("f4" if text[1] in "fF" else "f8")
        )
    if np.dtype(kind).kind == "f":
        return float(text)
    return int(text.rstrip("U"), 0) & (1 << 8 * np.dtype(kind).itemsize) - 1


def _declare(kernel: PtxKernel, variable: Variable, align: int) -> None:
    if variable.space == "shared":
        begin = -(-kernel.shared_bytes // align) * align
        kernel.shared_bytes = begin + variable.bytes
    elif variable.space == "local":
        begin = -(-kernel.local_bytes // align) * align
        kernel.local_bytes = begin + variable.bytes
    else:
        begin = 0
    kernel.variables[variable.name] = variable._replace(begin=begin)


class _Body:
    """Reads a kernel's statements; registers that inner scopes declare get names of their own."""

    def __init__(self, kernel: PtxKernel) -> None:
        self.kernel = kernel
        self._scopes: list[dict[str, str]] = [{}]
        self._count = 0
        self._place = self._called_from = Place()
        self._inlined: dict[tuple[int, int, int], Place] = {}

    def read(self, body: str) -> None:
        """Add the instructions, labels and variables of a body."""
        label = ""
        for statement in _statements(body):
            if statement == "{":
                self._count += 1
                self._scopes.append({})
            elif statement == "}":
                self._scopes.pop()
            elif statement.endswith(":"):
                label = self._renamed(statement[:-1].strip())
                self.kernel.labels[label] = len(self.kernel.code)
            elif statement.startswith(".loc "):
                self._locate(statement)
            elif statement.startswith(".reg"):
                self._registers(statement)
            elif statement.startswith(".branchtargets"):
                self.kernel.tables[label] = split(statement.partition(" ")[2])
            elif statement.startswith("."):
                if found := _variable(statement):
                    _declare(self.kernel, *found)
            else:
                self._instruction(statement)

    def _locate(self, statement: str) -> None:
        match = _LOCATION.match(statement)
        if match is None:
            return
        file, line, column, *caller = (int(number or 0) for number in match.groups())
        self._place = self._called_from = Place(file, line)
        if caller[1]:
            at = caller[0], caller[1], caller[2]
            self._called_from = self._inlined.get(at, Place(caller[0], caller[1]))
        self._inlined[file, line, column] = self._called_from

    def _registers(self, statement: str) -> None:
        kind, names = re.match(r"\.reg\s+(?:\.v\d\s+)?\.(\w+)\s+(.*)", statement, re.DOTALL).groups()  # type: ignore[union-attr]
        for declared in names.split(","):
            name = declared.strip().split("<")[0]
            if len(self._scopes) > 1:
                self._scopes[-1][name] = f"{name}_{self._count}_"
                name = self._scopes[-1][name]
            self.kernel.registers[name] = kind

    def _renamed(self, text: str) -> str:
        if len(self._scopes) == 1:
            return text

        def rename(match: re.Match[str]) -> str:
            for scope in reversed(self._scopes):
                if match[0] in scope:
                    return scope[match[0]]
                stem = match[0].rstrip("0123456789")
                if stem in scope:
                    return scope[stem] + match[0][len(stem) :]
            return match[0]

        return _NAME.sub(rename, text)

    def _instruction(self, statement: str) -> None:
        guard, negated = "", False
        statement = self._renamed(statement)
        if match := _GUARD.match(statement):
            negated, guard = bool(match[1]), match[2]
            statement = statement[match.end() :]
        opcode, _, rest = statement.partition(" ")
        made = Instruction(
            opcode, split(rest), guard, negated, self._place, self._called_from, tuple(opcode.split("."))
        )
        self.kernel.code.append(made)


def _statements(body: str) -> Iterator[str]:
    """The statements of a body: instructions, directives, labels with their colon, and braces of scopes."""
    for raw in re.split(r";|\n(?=\s*\.(?:loc|file|pragma)\b)|(?<=[\d\"])\n", body):
        text = " ".join(raw.split())
        while text:
            if text[0] in "{}":
                yield text[0]
                text = text[1:].strip()
            elif label := re.match(r"(\$?[\w$]+)\s*:(?!:)\s*", text):
                yield f"{label[1]}:"
                text = text[label.end() :]
            elif text.startswith((".loc ", ".file", ".pragma")):
                yield text
                break
            else:
                closing = _scope_end(text)
                yield text[:closing].strip()
                text = text[closing:]


def _scope_end(text: str) -> int:
    """Where a statement ends that is followed by the braces of scopes; a brace of its own operands is not one."""
    depth = 0
    for number, character in enumerate(text):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth < 0:
                return number
    return len(text)


_NO_TARGET = {
    "st", "red", "bra", "brx", "ret", "exit", "bar", "barrier", "membar", "fence", "cp", "trap", "mbarrier", "prefetch",
    "prefetchu", "griddepcontrol", "nanosleep", "stmatrix", "discard", "call", "brkpt", "pmevent", "applypriority",
}  # fmt: skip


def _describe(kernel: PtxKernel, instruction: Instruction) -> None:
    """Fill in which registers an instruction writes and reads."""
    operands = instruction.operands
    if operands and instruction.root not in _NO_TARGET:
        instruction.targets = tuple(kernel.registers_in(operands[0]))
        operands = operands[1:]
    read = [] if instruction.root == "bra" else [text for text in operands if not text.startswith("[")]
    instruction.sources = tuple(name for text in read for name in kernel.registers_in(text))
