"""PTX text as kernels (PTX ISA, "Syntax" and "State Spaces, Types, and Variables")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from smembench.explain.ptx.program import NAME, TYPES, Instruction, Parameter, Place, PtxKernel, Variable, split
from smembench.explain.ptx.statements import labels_of, statements_of
from smembench.model.errors import UsageError

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_HEADER = re.compile(r"\.(entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)\s*(?:\((.*?)\))?([^{;]*)([{;])", re.DOTALL)
_VARIABLE = re.compile(
    r"\.(shared|local|global|const)\s+(?:\.(?:align\s+\d+|attribute\([^)]*\))\s*)*(?:\.v(\d)\s+)?\.(\w+)\s+"
    r"([\w$]+)\s*((?:\[\d*\])*)\s*(?:=\s*(.*))?$",
    re.DOTALL,
)
_CLUSTER = re.compile(r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
_MOST_BLOCKS = re.compile(r"\.maxclusterrank\s+(\d+)")
_ALIGN = re.compile(r"\.align\s+(\d+)")
_SPACES = ("shared", "global", "local", "const", "param")
_GRID_BARRIER = "cudaCGSynchronize"
"""A function of CUDA's device runtime that waits for all blocks of a grid."""
_GUARD = re.compile(r"@(!?)(%?[\w$]+)\s+")
_LOCATION = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")


class Module(NamedTuple):
    """The kernels of a PTX text by name, and the names of its source files by number."""

    kernels: Mapping[str, PtxKernel]
    files: Mapping[int, str]


def parse(text: str) -> Module:
    """Parse a PTX module.

    Raises:
        UsageError: for text that is no PTX.
    """
    if ".version" not in text or ".target" not in text:
        raise UsageError("this is no PTX: it has no .version and .target")
    files = {int(number): name for number, name in re.findall(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', text, re.MULTILINE)}
    text = re.split(r"^\s*\.section\s", _COMMENT.sub("", text), maxsplit=1, flags=re.MULTILINE)[0]
    kernels, outside, position = {}, [], 0
    for header, end in _functions(text):
        outside.append(text[position : header.start()])
        position = end + 1
        if header[1] == "entry":
            kernels[header[2]] = header, text[header.end() : end]
    outside.append(text[position:])
    of_module = [found for statement in "".join(outside).split(";") if (found := _variable(statement))]
    return Module({name: _kernel(*parts, of_module) for name, parts in kernels.items()}, files)


def alone(text: str, kernel: str) -> str:
    """PTX without any other kernel than this one."""
    text, kept, position = _COMMENT.sub("", text), [], 0
    for header, end in _functions(text):
        if header[1] == "entry" and header[2] != kernel:
            begin = text.rfind("\n", 0, header.start()) + 1  # with .visible and such before it
            kept.append(text[position:begin])
            position = end + 1
    return "".join([*kept, text[position:]])


def _functions(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """The headers of kernels and functions that have a body, and where it ends."""
    position = 0
    while header := _HEADER.search(text, position):
        position = header.end()
        if header[5] == "{":
            end = _closing(text, position)
            yield header, end
            position = end + 1


def _closing(text: str, begin: int) -> int:
    """Where the brace that was opened before ``begin`` is closed."""
    depth = 1
    for match in re.finditer(r"[{}]", text[begin:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return begin + match.start()
    return len(text)


def _kernel(header: re.Match[str], body: str, of_module: Sequence[tuple[Variable, int]]) -> PtxKernel:
    kernel = PtxKernel(header[2], [_parameter(each) for each in split(header[3] or "")])
    kernel.explicit_cluster = ".explicitcluster" in header[4]
    kernel.blocks_are_clusters = ".blocksareclusters" in header[4]
    if cluster := _CLUSTER.search(header[4]):
        x, y, z = (int(side or 1) for side in cluster.groups())
        kernel.cluster = x, y, z
    if most := _MOST_BLOCKS.search(header[4]):
        kernel.most_blocks = int(most[1])
    used = set(NAME.findall(body))
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
        statements = list(statements_of(body))
        for number, statement in enumerate(statements):
            if statement == "{":
                self._count += 1
                self._scopes.append({each: f"{each}_{self._count}_" for each in labels_of(statements[number + 1 :])})
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

        return NAME.sub(rename, text)

    def _instruction(self, statement: str) -> None:
        guard, negated = "", False
        statement = self._renamed(statement)
        if match := _GUARD.match(statement):
            negated, guard = bool(match[1]), match[2]
            statement = statement[match.end() :]
        if statement.startswith("call") and _GRID_BARRIER in statement:
            statement = "bar.sync.grid 0"  # what it does in a block; its loads and stores are those of a library
        opcode, _, rest = statement.partition(" ")
        parts = tuple(opcode.split("."))
        space = next((name for part in parts if (name := part.partition("::")[0]) in _SPACES), "generic")
        lines = self._place, self._called_from
        self.kernel.code.append(Instruction(opcode, split(rest), guard, negated, *lines, parts, space))


_NO_TARGET = {
    "st", "red", "bra", "brx", "ret", "exit", "bar", "barrier", "membar", "fence", "cp", "trap", "prefetch",
    "prefetchu", "griddepcontrol", "nanosleep", "stmatrix", "discard", "call", "brkpt", "pmevent", "applypriority",
}  # fmt: skip


def _describe(kernel: PtxKernel, instruction: Instruction) -> None:
    """Fill in which registers an instruction writes and reads."""
    operands = instruction.operands
    if operands and instruction.root not in _NO_TARGET and not operands[0].startswith("["):
        instruction.targets = tuple(kernel.registers_in(operands[0]))
        operands = operands[1:]
    read = [] if instruction.root == "bra" else [text for text in operands if not text.startswith("[")]
    instruction.sources = tuple(name for text in read for name in kernel.registers_in(text))
