"""PTX text as kernels (PTX ISA, "Syntax" and "State Spaces, Types, and Variables")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from smembench.explain.ptx.body import Body, Function, declare
from smembench.explain.ptx.program import NAME, Instruction, PtxKernel, Variable
from smembench.explain.ptx.statements import statements_of
from smembench.explain.ptx.variables import variable_of
from smembench.launches.ptx_entry import parameter_of, split
from smembench.model.errors import UsageError

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_HEADER = re.compile(
    r"\.(?P<kind>entry|func)\s+(?:\((?P<results>[^)]*)\)\s*)?(?P<name>[\w$]+)\s*(?:\((?P<parameters>.*?)\))?"
    r"(?P<directives>[^{;]*)(?P<opens>[{;])",
    re.DOTALL,
)
_CLUSTER = re.compile(r"\.reqnctapercluster\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")
_MOST_BLOCKS = re.compile(r"\.maxclusterrank\s+(\d+)")
_BLOCK = re.compile(r"\.(reqn|maxn)tid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")


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
    kernels, functions, outside, position = {}, {}, [], 0
    for header, end in _functions(text):
        outside.append(text[position : header.start()])
        position = end + 1
        if header["kind"] == "entry":
            kernels[header["name"]] = header, text[header.end() : end]
        else:
            names = [parameter_of(declaration).name for declaration in split(f"{header['parameters'] or ''}")]
            results = [parameter_of(declaration).name for declaration in split(header["results"] or "")]
            functions[header["name"]] = Function([*results, *names], text[header.end() : end])
    outside.append(text[position:])
    of_module = [variable for statement in "".join(outside).split(";") if (variable := variable_of(statement))]
    return Module({name: _kernel(*parts, of_module, functions) for name, parts in kernels.items()}, files)


def alone(text: str, kernel: str) -> str:
    """PTX without any other kernel than this one."""
    text, kept, position = _COMMENT.sub("", text), [], 0
    for header, end in _functions(text):
        if header["kind"] == "entry" and header["name"] != kernel:
            begin = text.rfind("\n", 0, header.start()) + 1  # with .visible and such before it
            kept.append(text[position:begin])
            position = end + 1
    return "".join([*kept, text[position:]])


def _functions(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """The headers of kernels and functions that have a body, and where it ends."""
    position = 0
    while header := _HEADER.search(text, position):
        position = header.end()
        if header["opens"] == "{":
            end = _closing(text, position)
            yield header, end
            position = end + 1


def _closing(text: str, begin: int) -> int:
    """The place of the closing brace of a scope that begins at ``begin``."""
    depth = 1
    for match in re.finditer(r"[{}]", text[begin:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return begin + match.start()
    return len(text)


def _kernel(
    header: re.Match[str],
    body: str,
    of_module: Sequence[tuple[Variable, int]],
    functions: Mapping[str, Function],
) -> PtxKernel:
    kernel = PtxKernel(header["name"], [parameter_of(declaration) for declaration in split(header["parameters"] or "")])
    _compiled_for(kernel, header["directives"])
    used = set(NAME.findall(body))
    for function in functions.values() if "call" in body else ():
        used.update(NAME.findall(function.body))
    dynamic = []
    for variable, align in of_module:
        if variable.name not in used:
            continue
        if variable.space == "shared" and not variable.bytes:
            dynamic.append((variable, align))
        else:
            declare(kernel, variable, align)
    Body(kernel, functions).read(list(statements_of(body)))
    for variable, align in dynamic:
        begin = -(-kernel.shared_bytes // align) * align
        kernel.variables[variable.name] = variable._replace(begin=begin)
    for instruction in kernel.code:
        _describe(kernel, instruction)
    _locate_stores(kernel.code)
    _locate_loads(kernel.code)
    return kernel


def _compiled_for(kernel: PtxKernel, directives: str) -> None:
    """Add the clusters and blocks that a kernel is compiled for."""
    kernel.explicit_cluster = ".explicitcluster" in directives
    kernel.blocks_are_clusters = ".blocksareclusters" in directives
    if cluster := _CLUSTER.search(directives):
        x, y, z = (int(side or 1) for side in cluster.groups())
        kernel.cluster = x, y, z
    if most := _MOST_BLOCKS.search(directives):
        kernel.most_blocks = int(most[1])
    for kind, *sides in _BLOCK.findall(directives):
        x, y, z = (int(side or 1) for side in sides)
        if kind == "reqn":
            kernel.block = x, y, z
        else:
            kernel.most_threads = x * y * z


def _locate_stores(code: Sequence[Instruction]) -> None:
    """Give a store of no line, which several branches share, the line where its value is loaded or computed."""
    writers: dict[str, Instruction] = {}
    for instruction in (instruction for instruction in code if instruction.place.line):
        for name in instruction.targets:
            if name not in writers or instruction.root != "mov":
                writers[name] = instruction
    for store in (instruction for instruction in code if instruction.root == "st" and not instruction.place.line):
        if origin := next((writers[name] for name in store.sources if name in writers), None):
            store.place, store.called_from = origin.place, origin.called_from


def _locate_loads(code: Sequence[Instruction]) -> None:
    """Give a load of no line, which several branches share, the line that uses its value first; its place stays."""
    readers: dict[str, Instruction] = {}
    for instruction in (instruction for instruction in code if instruction.called_from.line):
        for name in instruction.sources:
            readers.setdefault(name, instruction)
    for load in (instruction for instruction in code if instruction.root == "ld" and not instruction.called_from.line):
        if user := next((readers[name] for name in load.targets if name in readers), None):
            load.called_from = user.called_from


_NO_TARGET = {
    "st", "red", "bra", "brx", "ret", "exit", "bar", "barrier", "membar", "fence", "cp", "trap", "prefetch",
    "prefetchu", "griddepcontrol", "nanosleep", "stmatrix", "discard", "call", "brkpt", "pmevent", "applypriority",
}  # fmt: skip


def _describe(kernel: PtxKernel, instruction: Instruction) -> None:
    """Fill in the registers that an instruction writes and reads."""
    operands = instruction.operands
    if operands and instruction.root not in _NO_TARGET and not operands[0].startswith("["):
        instruction.targets = tuple(kernel.registers_in(operands[0]))
        operands = operands[1:]
    read = [] if instruction.root == "bra" else [text for text in operands if not text.startswith("[")]
    instruction.sources = tuple(name for text in read for name in kernel.registers_in(text))
