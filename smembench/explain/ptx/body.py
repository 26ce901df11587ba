"""The body of a PTX kernel as instructions, with the functions that it calls in their places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from smembench.explain.ptx.program import NAME, Instruction, Place, PtxKernel, Variable
from smembench.explain.ptx.statements import labels_of, statements_of
from smembench.explain.ptx.variables import variable_of
from smembench.launches.ptx_entry import split

_CALL = re.compile(
    r"(?:@(?P<guard>!?%?[\w$]+)\s+)?call(?:\.uni)?\s+(?:\((?P<results>[^)]*)\)\s*,\s*)?(?P<name>[\w$]+)"
    r"\s*(?:,\s*\((?P<arguments>[^)]*)\))?"
)
_RETURN = re.compile(r"^((?:@!?%?[\w$]+\s+)?)ret(?:\.uni)?$")
_SPACES = ("shared", "global", "local", "const", "param")
_GRID_BARRIER = "cudaCGSynchronize"
"""A function of CUDA's device runtime that waits for all blocks of a grid."""
_GUARD = re.compile(r"@(!?)(%?[\w$]+)\s+")
_LOCATION = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")


class Function(NamedTuple):
    """A function by the names of its results and parameters, and its body."""

    parameters: list[str]
    body: str


def declare(kernel: PtxKernel, variable: Variable, align: int) -> None:
    """Add a variable to a kernel, behind those that lie in its space."""
    if variable.space == "shared":
        begin = -(-kernel.shared_bytes // align) * align
        kernel.shared_bytes = begin + variable.bytes
    elif variable.space == "local":
        begin = -(-kernel.local_bytes // align) * align
        kernel.local_bytes = begin + variable.bytes
    else:
        begin = 0
    kernel.variables[variable.name] = variable._replace(begin=begin)


class Body:
    """Reads a kernel's statements; registers that inner scopes declare get names of their own, as do those of calls."""

    def __init__(self, kernel: PtxKernel, functions: Mapping[str, Function]) -> None:
        self.kernel = kernel
        self._functions = functions
        self._scopes: list[dict[str, str]] = [{}]
        self._count = 0
        self._within: set[str] = set()
        self._place = self._called_from = Place()
        self._call_site: Place | None = None
        self._inlined: dict[tuple[int, int, int], Place] = {}

    def read(self, statements: Sequence[str]) -> None:
        """Add the instructions, labels and variables of a body."""
        label = ""
        for number, statement in enumerate(statements):
            if statement == "{":
                self._count += 1
                self._scopes.append({name: f"{name}_{self._count}_" for name in labels_of(statements[number + 1 :])})
            elif statement == "}":
                self._scopes.pop()
            elif statement.endswith(":"):
                label = self._renamed(statement[:-1].strip())
                self.kernel.labels[label] = len(self.kernel.code)
            elif statement.startswith("."):
                self._directive(statement, label)
            elif (call := _CALL.match(statement)) and call["name"] in self._functions.keys() - self._within:
                self._call(call)
            else:
                self._instruction(statement)

    def _directive(self, statement: str, label: str) -> None:
        if statement.startswith(".loc "):
            self._locate(statement)
        elif statement.startswith(".reg"):
            self._registers(statement)
        elif statement.startswith(".branchtargets"):
            self.kernel.tables[label] = split(statement.partition(" ")[2])
        elif declaration := variable_of(statement):
            self._variable(*declaration)

    def _variable(self, variable: Variable, align: int) -> None:
        """A variable of the body; parameters of calls are memory of the thread."""
        if variable.space == "param":
            self._scopes[-1].setdefault(variable.name, f"{variable.name}_{self._count}_")
            variable = variable._replace(space="local", name=self._scopes[-1][variable.name])
        declare(self.kernel, variable, align)

    def _call(self, call: re.Match[str]) -> None:
        """The body of a function in place of its call; one that calls itself stays a call."""
        function = self._functions[call["name"]]
        self._within.add(call["name"])
        self._count += 1
        end, outer, site = f"$end_{self._count}_", self._scopes, self._call_site
        given = [self._renamed(text) for text in (*split(call["results"] or ""), *split(call["arguments"] or ""))]
        if call["guard"]:
            guard = call["guard"]
            self._instruction(f"@{guard[1:] if guard[0] == '!' else f'!{guard}'} bra {end}")
        statements = [_RETURN.sub(rf"\1bra {end}", statement) for statement in statements_of(function.body)]
        own = {label: f"{label}_{self._count}_" for label in labels_of(statements)}
        self._scopes = [{}, own | dict(zip(function.parameters, given, strict=False))]
        self._call_site, place = self._called_from, self._place
        self.read(statements)
        self.kernel.labels[end] = len(self.kernel.code)
        self._scopes, self._place, self._called_from, self._call_site = outer, place, self._call_site, site
        self._within.remove(call["name"])

    def _locate(self, statement: str) -> None:
        match = _LOCATION.match(statement)
        if match is None:
            return
        file, line, column, *caller = (int(number or 0) for number in match.groups())
        self._place = self._called_from = Place(file, line)
        if caller[1]:
            at = caller[0], caller[1], caller[2]
            self._called_from = self._inlined.get(at, Place(caller[0], caller[1]))
        if not line:  # code that a compiler made has the line that needed it
            self._place = self._called_from
        if self._call_site is not None:
            self._called_from = self._call_site
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
        if "param" in parts and self._is_of_call(rest):
            parts = tuple("local" if part == "param" else part for part in parts)
            opcode, space = ".".join(parts), "local"
        lines = self._place, self._called_from
        self.kernel.code.append(Instruction(opcode, split(rest), guard, negated, *lines, parts, space))

    def _is_of_call(self, operands: str) -> bool:
        """True if an instruction accesses a parameter or a result of a call."""
        return any(name in self.kernel.variables for text in split(operands) for name in NAME.findall(text))
